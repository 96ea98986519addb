/** Entries as they are shown: a call beside its result, a question beside its answer. */

import type { AnswerPart, AskPart, CallPart, Entry, ResultPart } from "./parts";
import { answerOf, askOf, callOf, resultOf } from "./parts";

export type Item =
  | { kind: "line"; key: number; entry: Entry }
  | {
      kind: "tool";
      key: number;
      call: Entry;
      called: CallPart;
      result: Entry | null;
      came: ResultPart | null;
      /** A person asked for just this, by a command. */
      isWanted: boolean;
    }
  | { kind: "approval"; key: number; ask: Entry; asked: AskPart; answer: Entry | null; answered: AnswerPart | null };

export function items(entries: readonly Entry[]): Item[] {
  const results = new Map<string, Entry>();
  const answers = new Map<number, Entry>();
  for (const entry of entries) {
    const came = resultOf(entry);
    if (came && !results.has(came.call_id)) results.set(came.call_id, entry);
    const answered = answerOf(entry);
    if (answered) answers.set(answered.ask, entry);
  }
  const shown: Item[] = [];
  const taken = new Set<Entry>();
  let isWanted = false;
  for (const entry of entries) {
    if (taken.has(entry)) continue;
    if (entry.kind === "said") isWanted = entry.text.trimStart().startsWith("/");
    const called = callOf(entry);
    const asked = askOf(entry);
    if (called) {
      const result = results.get(called.call_id) ?? null;
      if (result) taken.add(result);
      const came = result && resultOf(result);
      shown.push({ kind: "tool", key: entry.number, call: entry, called, result, came, isWanted });
    } else if (asked) {
      const answer = answers.get(entry.number) ?? null;
      if (answer) taken.add(answer);
      const answered = answer && answerOf(answer);
      shown.push({ kind: "approval", key: entry.number, ask: entry, asked, answer, answered });
    } else {
      shown.push({ kind: "line", key: entry.number, entry });
    }
  }
  return shown;
}

/** Whether two of the same key show the same: entries never change, a result or an answer may have come. */
export function isSame(one: Item, other: Item): boolean {
  return sources(one).every((entry, i) => entry === sources(other)[i]);
}

function sources(item: Item): (Entry | null)[] {
  if (item.kind === "line") return [item.entry];
  return item.kind === "tool" ? [item.call, item.result] : [item.ask, item.answer];
}
