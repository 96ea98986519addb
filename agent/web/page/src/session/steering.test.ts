import { describe, expect, it } from "vitest";

import { readParams } from "./steering";

const SPACE = {
  lr: { type: "float", low: 0, high: 1, log: false, default: 0.1 },
  kind: { type: "categorical", choices: ["a", "b", true], default: "a" },
} as const;

describe("what is to be tried", () => {
  it("is read by the space", () => {
    expect(readParams("lr=0.3, kind=b", SPACE)).toEqual({ lr: 0.3, kind: "b" });
    expect(readParams("kind=true", SPACE)).toEqual({ kind: true });
    expect(readParams("  ", SPACE)).toEqual({});
  });

  it("says what is wrong and what would do", () => {
    expect(readParams("rate=3", SPACE)).toBe("rate is no parameter; there are: lr, kind");
    expect(readParams("lr=", SPACE)).toBe('lr is a number, not ""');
    expect(readParams("lr=fast", SPACE)).toBe('lr is a number, not "fast"');
    expect(readParams("kind=c", SPACE)).toBe("kind is one of: a, b, true");
  });
});
