// From the pieces of a curve to what a plot draws. Pure.

import type { PlotLine } from "../ui/Plot";
import type { Curve } from "./types";

export interface Drawn {
  x: number[];
  lines: PlotLine[];
  marks: { x: number; label: string }[];
  /** Values that a log axis can not show. */
  nHidden: number;
}

export interface Look {
  isLog: boolean;
  /** 0: as it was logged; towards 1: smoother. */
  smoothing: number;
}

type Value = number | null | undefined;

/** One line an attempt, over the steps of all of them. A step that an attempt did not log is no gap in it; a value that is no number is. */
export function drawn(curve: Curve, look: Look): Drawn {
  const x = [...new Set(curve.pieces.flatMap((piece) => piece.points.map((point) => point[0])))].sort((a, b) => a - b);
  const place = new Map(x.map((step, index) => [step, index]));
  let nHidden = 0;
  const lines = curve.pieces.map((piece, index): PlotLine => {
    const values = smoothed(piece.points.map((point) => point[1]), look.smoothing);
    const y: Value[] = new Array<Value>(x.length).fill(undefined);
    piece.points.forEach(([step], at) => {
      const value = values[at] ?? null;
      const isHidden = look.isLog && value !== null && value <= 0;
      if (isHidden) nHidden += 1;
      y[place.get(step) ?? 0] = isHidden ? null : value;
    });
    // The plot takes undefined as "nothing here", which is not the same as a gap.
    return { name: names(curve)[index] ?? "", y: y as (number | null)[] };
  });
  const starts = curve.pieces.slice(1).map((piece, index) => ({
    x: piece.points[0]?.[0] ?? 0,
    label: names(curve)[index + 1] ?? "",
  }));
  return { x, lines, marks: starts, nHidden };
}

/** `attempt 2`, with the job where there are several. */
export function names(curve: Curve): string[] {
  const hasJobs = new Set(curve.pieces.map((piece) => piece.job_id)).size > 1;
  return curve.pieces.map((piece) => (hasJobs ? `${piece.job_id} attempt ${piece.attempt}` : `attempt ${piece.attempt}`));
}

/** Exponential means that begin at the first value; a gap stays one and starts nothing anew. */
export function smoothed(values: readonly (number | null)[], weight: number): (number | null)[] {
  if (weight <= 0) return [...values];
  let sum = 0;
  let whole = 0;
  return values.map((value) => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    whole = weight * whole + (1 - weight);
    return sum / whole;
  });
}
