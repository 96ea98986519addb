import { expect, it } from "vitest";

import { aligned } from "./aligned";

it("puts series over one x: a null is a gap, a point that is not there is none", () => {
  const one = { name: "a\u001b[31m", points: [[2, 1] as const, [0, null] as const] };
  const other = { name: "b", points: [[1, 5] as const] };
  expect(aligned([one, other])).toEqual({
    x: [0, 1, 2],
    lines: [
      { name: "a", y: [null, undefined, 1] },
      { name: "b", y: [undefined, 5, undefined] },
    ],
  });
});

it("has nothing to draw of nothing", () => {
  expect(aligned([])).toEqual({ x: [], lines: [] });
});
