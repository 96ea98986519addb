// The lines of a log, and which of them report an error. Pure.

import { inert } from "../ui/inert";

export interface Line {
  text: string;
  isError: boolean;
}

const LOOK_AT = 80;

/** Without what varies from line to line: alike errors differ in numbers only, as the runtime counts them. */
function alike(text: string): string {
  return text.replace(/0x[0-9a-fA-F]+|\d+/g, "#").trim();
}

export function logLines(text: string, errors: readonly string[]): Line[] {
  const signs = errors.map((error) => alike(inert(error)).slice(0, LOOK_AT)).filter((sign) => sign !== "");
  const lines = inert(overwritten(text)).split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line) => {
    const shape = alike(line);
    return { text: line, isError: signs.some((sign) => shape.includes(sign)) };
  });
}

/** The next error line behind (or, backwards, before) a line, around the end; null: there is none. */
export function nextError(lines: readonly Line[], from: number | null, step: 1 | -1): number | null {
  const n = lines.length;
  const begin = from ?? (step === 1 ? -1 : n);
  for (let away = 1; away <= n; away += 1) {
    const index = (((begin + step * away) % n) + n) % n;
    if (lines[index]?.isError) return index;
  }
  return null;
}

/** Progress bars write over their own line: what stood there last is shown. */
function overwritten(text: string): string {
  return text.replace(/\r+\n/g, "\n").replace(/[^\n]*\r(?=[^\n])/g, "");
}
