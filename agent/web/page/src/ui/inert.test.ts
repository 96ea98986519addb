import { expect, it } from "vitest";

import { inert } from "./inert";

it("drops terminal codes, titles and links among them", () => {
  expect(inert("\u001b[31mred\u001b[0m \u001b]0;title\u0007\u001b]8;;http://evil.example\u001b\\x")).toBe("red x");
});

it("shows characters that would hide or turn others", () => {
  expect(inert("a\u202eb\u200bc\u0000d\u001b")).toBe("a\ufffdb\ufffdc\ufffdd\ufffd");
});

it("keeps words of all languages, newlines and tabs", () => {
  const words = "naïve שלום 学習\tüber\n<b>&amp;";
  expect(inert(words)).toBe(words);
});
