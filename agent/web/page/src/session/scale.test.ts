import { describe, expect, it } from "vitest";

import { clipped, linear, logarithmic, robustLimits } from "./scale";

describe("scales", () => {
  it("has round ticks inside the axis", () => {
    const scale = linear(0.913, 0.987, 5);
    expect(scale.ticks.map((tick) => tick.label)).toEqual(["0.92", "0.94", "0.96", "0.98"]);
    expect(scale.at(0.913)).toBe(0);
    expect(scale.at(0.987)).toBe(1);
  });

  it("goes by powers of ten over many of them, and by parts over few", () => {
    expect(logarithmic(1e-4, 1e-1).ticks.map((tick) => tick.label)).toEqual(["1e-4", "1e-3", "0.01", "0.1"]);
    expect(logarithmic(8, 128).ticks.map((tick) => tick.value)).toEqual([10, 20, 50, 100]);
  });

  it("makes an axis of a single value", () => {
    const [low, high] = robustLimits([3, 3, 3]);
    expect(low).toBeLessThan(3);
    expect(high).toBeGreaterThan(3);
    expect(linear(low, high).ticks.length).toBeGreaterThan(0);
    expect(robustLimits([])).toEqual([0, 1]);
  });

  it("leaves one that is far out at the border, but never what has to be seen", () => {
    const values = Array.from({ length: 40 }, (_, n) => 0.9 + n / 1000);
    const [low] = robustLimits([...values, -50]);
    expect(low).toBeGreaterThan(0.8);
    expect(clipped(linear(low, 1), -50)).toEqual({ at: 0, beyond: true });
    expect(robustLimits([...values, -50], [-50])[0]).toBeLessThan(-50);
  });
});
