import { expect, it } from "vitest";

import type { Entry } from "./parts";
import { isSame, items } from "./turns";

const entry = (number: number, kind: string, content: object = {}, text = ""): Entry =>
  ({ number, kind, at: 0, by: "ada", text, ends_turn: false, content }) as unknown as Entry;

it("puts a result beside its call and an answer beside its question", () => {
  const shown = items([
    entry(1, "said", {}, "which runs?"),
    entry(2, "call", { call_id: "a", tool: "list_jobs", arguments: {} }),
    entry(3, "call", { call_id: "b", tool: "stop_job", arguments: {} }),
    entry(4, "ask", { call_id: "b" }),
    entry(5, "result", { call_id: "a", tool: "list_jobs" }),
    entry(6, "answer", { ask: 4, answer: "deny" }),
  ]);
  expect(shown.map((item) => [item.kind, item.key])).toEqual([
    ["line", 1],
    ["tool", 2],
    ["tool", 3],
    ["approval", 4],
  ]);
  expect(shown[1]).toMatchObject({ result: { number: 5 }, isWanted: false });
  expect(shown[2]).toMatchObject({ result: null });
  expect(shown[3]).toMatchObject({ answered: { answer: "deny" } });
});

it("knows what a person asked for by a command", () => {
  const call = entry(2, "call", { call_id: "a", tool: "list_jobs", arguments: {} });
  expect(items([entry(1, "said", {}, " /jobs"), call])[1]).toMatchObject({ isWanted: true });
});

it("shows a result whose call is not loaded by itself", () => {
  expect(items([entry(9, "result", { call_id: "a" })])).toMatchObject([{ kind: "line", key: 9 }]);
});

it("sees that a result has come", () => {
  const call = entry(2, "call", { call_id: "a", tool: "list_jobs", arguments: {} });
  const [before] = items([call]);
  const [again] = items([call]);
  const [later] = items([call, entry(3, "result", { call_id: "a" })]);
  expect([isSame(before!, again!), isSame(before!, later!)]).toEqual([true, false]);
});
