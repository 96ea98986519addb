import { expect, it } from "vitest";

import type { ChatView, Entry } from "./parts";
import { after, EMPTY, newest, oldest, pageBefore, type News, type Thread } from "./thread";

const entry = (number: number, kind: Entry["kind"] = "reply"): Entry =>
  ({ number, kind, at: 0, by: "ada", text: `${number}`, ends_turn: false, content: {} }) as Entry;
const told = (...news: News[]): Thread => news.reduce(after, EMPTY);
const entries = (...numbers: number[]): News => ({ kind: "entries", entries: numbers.map((number) => entry(number)) });
const numbers = (thread: Thread) => thread.entries.map((one) => one.number);

it("shows nothing twice and keeps the order, whatever comes again", () => {
  const thread = told(entries(3, 4), entries(4, 5), entries(1, 2, 3), entries(5));
  expect(numbers(thread)).toEqual([1, 2, 3, 4, 5]);
  expect([oldest(thread), newest(thread)]).toEqual([1, 5]);
});

it("writes a reply on, and again from where the service says", () => {
  const pieces: News[] = [
    { kind: "text", offset: 0, text: "the be" },
    { kind: "text", offset: 6, text: "st" },
  ];
  expect(told(...pieces).draft).toBe("the best");
  expect(told(...pieces, { kind: "text", offset: 0, text: "the best is" }).draft).toBe("the best is");
});

it("drops the draft when the reply has come, and when the turn is over", () => {
  const draft: News = { kind: "text", offset: 0, text: "half" };
  expect(told(draft, entries(1)).draft).toBe("");
  expect(told(draft, { kind: "state", chat: { state: "idle" } as ChatView }).draft).toBe("");
  expect(told(draft, { kind: "state", chat: { state: "working" } as ChatView }).draft).toBe("half");
});

it("keeps the draft when older entries are loaded", () => {
  expect(told(entries(5), { kind: "text", offset: 0, text: "half" }, entries(3, 4)).draft).toBe("half");
});

it("asks for what comes before, and for nothing before the first", () => {
  expect(pageBefore(501, 60)).toEqual({ after: 440, limit: 60 });
  expect(pageBefore(31, 60)).toEqual({ after: 0, limit: 30 });
  expect(pageBefore(1, 60)).toBeNull();
});
