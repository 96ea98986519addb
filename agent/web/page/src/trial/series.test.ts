import { expect, test } from "vitest";

import { drawn, smoothed } from "./series";
import type { Curve } from "./types";

const curve = (...pieces: [string, number, [number, number | null][]][]): Curve => ({
  key: "loss",
  x: "step",
  n_points: 0,
  n_not_finite: 0,
  first_not_finite: null,
  pieces: pieces.map(([job_id, attempt, points]) => ({ job_id, attempt, points })),
});
const PLAIN = { isLog: false, smoothing: 0 };

test("what an attempt did not log is no gap, what is no number is one", () => {
  const found = drawn(curve(["j1", 1, [[0, 5], [1, null], [2, 3]]], ["j1", 2, [[1, 4], [3, 2]]]), PLAIN);
  expect(found.x).toEqual([0, 1, 2, 3]);
  expect(found.lines.map((line) => line.y)).toEqual([
    [5, null, 3, undefined],
    [undefined, 4, undefined, 2],
  ]);
  expect(found.marks).toEqual([{ x: 1, label: "attempt 2" }]);
});

test("attempts of several jobs are told with the job", () => {
  const found = drawn(curve(["j1", 1, [[0, 1]]], ["j2", 1, [[1, 1]]]), PLAIN);
  expect(found.lines.map((line) => line.name)).toEqual(["j1 attempt 1", "j2 attempt 1"]);
});

test("a log axis leaves out what it can not show, and counts it", () => {
  const found = drawn(curve(["j1", 1, [[0, 1], [1, 0], [2, -1]]]), { isLog: true, smoothing: 0 });
  expect(found.lines[0]?.y).toEqual([1, null, null]);
  expect(found.nHidden).toBe(2);
});

test("smoothing begins at the first value and keeps gaps", () => {
  expect(smoothed([2, null, 2], 0.9)).toEqual([2, null, 2]);
  const [first, second] = smoothed([0, 1], 0.5);
  expect(first).toBe(0);
  expect(second).toBeCloseTo(2 / 3);
});
