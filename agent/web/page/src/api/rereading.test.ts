import { expect, test } from "vitest";

import { Rereading } from "./rereading";

function world() {
  const waiting: (() => void)[] = [];
  const rests: number[] = [];
  let now = 0;
  let reads = 0;
  const rereading = new Rereading(
    () => {
      reads += 1;
      return new Promise<void>((done) => waiting.push(done));
    },
    async (ms) => void rests.push(ms),
    () => now,
  );
  const finish = async (ms: number) => {
    now += ms;
    waiting.shift()?.();
    for (let n = 0; n < 10; n += 1) await Promise.resolve();
  };
  return { rereading, finish, rests, reads: () => reads };
}

test("asked once, it reads once, at once", async () => {
  const { rereading, finish, rests, reads } = world();
  rereading.ask();
  expect(reads()).toBe(1);
  await finish(800);
  expect([reads(), rests]).toEqual([1, []]);
  rereading.ask();
  expect(reads()).toBe(2);
});

test("asked many times while it reads, it reads once more, after as long a rest", async () => {
  const { rereading, finish, rests, reads } = world();
  for (let n = 0; n < 5; n += 1) rereading.ask();
  expect(reads()).toBe(1);
  await finish(800);
  expect([reads(), rests]).toEqual([2, [800]]);
  await finish(700);
  expect(reads()).toBe(2);
});

test("once it is over, nothing is read again", async () => {
  const { rereading, finish, reads } = world();
  rereading.ask();
  rereading.ask();
  rereading.end();
  await finish(10);
  expect(reads()).toBe(1);
});
