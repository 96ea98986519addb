// What stands in an entry, by its kind. The service checks it, so kind and content always fit.

import type { ChatView, Entry } from "../api/types";
import type { components } from "../api/wire";

type Content = components["schemas"]["EntryContent"];
export type { ChatView, Entry };
export type ReplyPart = Content["reply"];
export type CallPart = Content["call"];
export type ResultPart = Content["result"];
export type AskPart = Content["ask"];
export type AnswerPart = Content["answer"];
export type TroublePart = Content["trouble"];
export type Cell = string | number | boolean | null;

function part<Kind extends keyof Content>(kind: Kind): (entry: Entry) => Content[Kind] | null {
  return (entry) => (entry.kind === kind ? (entry.content as unknown as Content[Kind]) : null);
}

export const replyOf = part("reply");
export const callOf = part("call");
export const resultOf = part("result");
export const askOf = part("ask");
export const answerOf = part("answer");
export const troubleOf = part("trouble");
