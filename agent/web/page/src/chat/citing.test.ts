import { expect, it } from "vitest";

import { cut } from "./citing";

it("links whole ids alone", () => {
  expect(cut("s1-t1 beats s1, not s1-t12", [{ kind: "trial", id: "s1-t1" }, { kind: "session", id: "s1" }], [])).toEqual([
    { kind: "cite", cite: { kind: "trial", id: "s1-t1" } },
    { kind: "text", text: " beats " },
    { kind: "cite", cite: { kind: "session", id: "s1" } },
    { kind: "text", text: ", not s1-t12" },
  ]);
});

it("marks what does not exist", () => {
  expect(cut("(s9-t9)", [], ["s9-t9"])).toEqual([
    { kind: "text", text: "(" },
    { kind: "unknown", id: "s9-t9" },
    { kind: "text", text: ")" },
  ]);
});

it("leaves a text without ids whole", () => {
  expect(cut("nothing", [], [])).toEqual([{ kind: "text", text: "nothing" }]);
});
