/** Series with points of their own, over one common x. A point that is null is a gap, one that is not there is none. */

import { inert } from "../ui/inert";

export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [number, number | null])[];
}

export interface Aligned {
  x: number[];
  lines: { name: string; y: (number | null | undefined)[] }[];
}

export function aligned(series: readonly Series[]): Aligned {
  const x = [...new Set(series.flatMap((one) => one.points.map((point) => point[0])))].sort((a, b) => a - b);
  const place = new Map(x.map((value, i) => [value, i]));
  const lines = series.map((one) => {
    const y = new Array<number | null | undefined>(x.length).fill(undefined);
    for (const [at, value] of one.points) y[place.get(at)!] = value;
    return { name: inert(one.name), y };
  });
  return { x, lines };
}
