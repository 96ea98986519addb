import { expect, test } from "vitest";

import { logLines, nextError } from "./logLines";

test("error lines are marked, also alike ones with other numbers", () => {
  const lines = logLines("ok 1\nError at step 7\nError at step 12\nfine", ["Error at step 7"]);
  expect(lines.map((line) => line.isError)).toEqual([false, true, true, false]);
});

test("colors and characters that turn the reading are not part of a line", () => {
  const [line] = logLines("\u001b[31mError\u001b[0m: \u202egnp.exe <b>x</b>", ["Error: gnp"]);
  expect(line?.text).toBe("Error: \ufffdgnp.exe <b>x</b>");
});

test("a progress bar shows what stood there last", () => {
  const lines = logLines("10%\r50%\r100%\r\ndone\n", []);
  expect(lines.map((line) => line.text)).toEqual(["100%", "done"]);
});

test("the next error is found around the end, in both directions", () => {
  const lines = logLines("a\nE\nb\nE\n", ["E"]);
  expect(nextError(lines, null, 1)).toBe(1);
  expect(nextError(lines, 1, 1)).toBe(3);
  expect(nextError(lines, 3, 1)).toBe(1);
  expect(nextError(lines, null, -1)).toBe(3);
  expect(nextError(logLines("a\n", []), null, 1)).toBeNull();
});
