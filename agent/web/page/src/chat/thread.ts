/** What the page knows of one chat, as a pure function of what came: entries are numbered, so nothing shows twice. */

import type { ChatView, Entry } from "./parts";

export interface Thread {
  /** By number, without a gap from the first one that is loaded. */
  readonly entries: readonly Entry[];
  readonly chat: ChatView | null;
  /** The reply that is being written. */
  readonly draft: string;
}

export const EMPTY: Thread = { entries: [], chat: null, draft: "" };

export type News =
  | { kind: "entries"; entries: readonly Entry[] }
  | { kind: "text"; offset: number; text: string }
  | { kind: "state"; chat: ChatView };

export function after(thread: Thread, news: News): Thread {
  switch (news.kind) {
    case "entries":
      return withEntries(thread, news.entries);
    case "text":
      return { ...thread, draft: thread.draft.slice(0, news.offset) + news.text };
    case "state":
      return { ...thread, chat: news.chat, draft: news.chat.state === "working" ? thread.draft : "" };
  }
}

function withEntries(thread: Thread, more: readonly Entry[]): Thread {
  if (!more.length) return thread;
  const last = newest(thread);
  const isAppended = more.every((entry, i) => entry.number > (i ? more[i - 1]!.number : last));
  const entries = isAppended ? [...thread.entries, ...more] : merged(thread.entries, more);
  const endsDraft = more.some((entry) => entry.number > last && entry.kind !== "said");
  return { ...thread, entries, draft: endsDraft ? "" : thread.draft };
}

function merged(some: readonly Entry[], others: readonly Entry[]): Entry[] {
  const byNumber = new Map([...some, ...others].map((entry) => [entry.number, entry]));
  return [...byNumber.values()].sort((one, other) => one.number - other.number);
}

/** Number of the newest entry, 0 where there is none: a stream goes on after it. */
export function newest(thread: Thread): number {
  return thread.entries.at(-1)?.number ?? 0;
}

/** Number of the oldest entry that is loaded, 1 where nothing is missing. */
export function oldest(thread: Thread): number {
  return thread.entries[0]?.number ?? 1;
}

/** What to ask for to get the entries before these: `after` and `limit`; null: there are none. */
export function pageBefore(number: number, size: number): { after: number; limit: number } | null {
  if (number <= 1) return null;
  const from = Math.max(0, number - 1 - size);
  return { after: from, limit: number - 1 - from };
}
