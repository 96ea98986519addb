// From values to places on an axis, and where the axis has its ticks. Pure.

export interface Tick {
  value: number;
  label: string;
}

export interface Scale {
  /** 0 to 1 within the axis. */
  at(value: number): number;
  ticks: Tick[];
  low: number;
  high: number;
}

export function linear(low: number, high: number, most = 6): Scale {
  const width = high - low || 1;
  const step = roundStep(width / most);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks: Tick[] = [];
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n += 1) {
    const value = n * step;
    ticks.push({ value, label: label(value, digits) });
  }
  return { at: (value) => (value - low) / width, ticks, low, high };
}

export function logarithmic(low: number, high: number, most = 6): Scale {
  const from = Math.log10(low);
  const width = Math.log10(high) - from || 1;
  const every = Math.max(1, Math.ceil(width / most));
  const factors = width <= 1.5 ? [1, 2, 5] : [1];
  const ticks: Tick[] = [];
  for (let power = Math.floor(from); power <= Math.ceil(from + width); power += 1) {
    if (power % every !== 0) continue;
    for (const factor of factors) {
      const value = factor * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) ticks.push({ value, label: short(value) });
    }
  }
  return { at: (value) => (Math.log10(value) - from) / width, ticks, low, high };
}

/** Limits that show most values well: what lies far outside of them is drawn at the border; `keep` is always inside. */
export function robustLimits(values: number[], keep: number[] = []): [number, number] {
  const ordered = [...values, ...keep].filter(Number.isFinite).sort((a, b) => a - b);
  if (ordered.length === 0) return [0, 1];
  const low = ordered[Math.floor(ordered.length / 4)] ?? 0;
  const high = ordered[Math.floor((3 * ordered.length) / 4)] ?? 0;
  const reach = 2 * (high - low);
  const inside = [...ordered.filter((value) => value >= low - reach && value <= high + reach), ...keep];
  const [least, most] = [Math.min(...inside), Math.max(...inside)];
  const room = 0.08 * (most - least) || 0.05 * Math.abs(most) || 0.5;
  return [least - room, most + room];
}

/** The place of a value, and whether it lies beyond an end of the axis. */
export function clipped(scale: Scale, value: number): { at: number; beyond: boolean } {
  const at = scale.at(value);
  return at < 0 || at > 1 ? { at: Math.min(Math.max(at, 0), 1), beyond: true } : { at, beyond: false };
}

function roundStep(step: number): number {
  const size = 10 ** Math.floor(Math.log10(step));
  const part = step / size;
  return size * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

function label(value: number, digits: number): string {
  if (Math.abs(value) >= 1e5) return short(value);
  return value.toFixed(Math.min(digits, 8)).replace(/^-0(\.0*)?$/, "0");
}

function short(value: number): string {
  if (value >= 0.01 && value < 1e4) return String(Number(value.toPrecision(2)));
  return value.toExponential(0).replace("e+", "e");
}
