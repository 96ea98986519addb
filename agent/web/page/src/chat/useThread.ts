// One chat as it is now: its newest entries first, then what comes by its stream, older ones when they are asked for.

import { useCallback, useEffect, useReducer, useRef, useState } from "react";

import { get, Refusal } from "../api/client";
import type { ServerEvent } from "../api/sse";
import { openStream, type Connection } from "../api/stream";
import type { components } from "../api/wire";
import type { ChatView, Entry } from "./parts";
import { after, EMPTY, newest, oldest, pageBefore, type News, type Thread } from "./thread";

const PAGE = 60;
type EntryPage = components["schemas"]["Page_Entry_"];

export interface Live {
  thread: Thread;
  connection: Connection;
  refusal: Refusal | null;
  /** null: nothing is missing, or it is being read. */
  loadOlder: (() => void) | null;
}

export function useThread(chatId: string | null): Live {
  const [thread, hear] = useReducer((known: Thread, news: News | null) => (news ? after(known, news) : EMPTY), EMPTY);
  const [connection, setConnection] = useState<Connection>("connecting");
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [isLoading, setLoading] = useState(false);
  const latest = useRef(thread);
  latest.current = thread;

  useEffect(() => {
    hear(null);
    setRefusal(null);
    if (chatId === null) return;
    const gone = new AbortController();
    let close = () => {};
    const begin = async () => {
      const from = await firstPage(chatId, gone.signal, hear);
      if (gone.signal.aborted) return;
      close = openStream(`${pathOf(chatId)}/stream?after=${from}`, {
        event: (event) => {
          const news = newsOf(event);
          if (news) hear(news);
        },
        connection: (state, refused) => {
          setConnection(state);
          if (state === "open") setRefusal(null);
          if (refused) setRefusal(refused);
        },
      });
    };
    const tryAgain = async () => {
      for (let waitMs = 500; !gone.signal.aborted; waitMs = Math.min(waitMs * 2, 5000)) {
        try {
          return await begin();
        } catch (error) {
          if (gone.signal.aborted) return;
          if (!(error instanceof Refusal)) throw error;
          setRefusal(error);
          const isFinal = error.status >= 400 && error.status < 500;
          setConnection(isFinal ? "refused" : "waiting");
          if (isFinal) return;
          await new Promise((resolve) => setTimeout(resolve, waitMs));
        }
      }
    };
    void tryAgain();
    return () => {
      gone.abort();
      close();
    };
  }, [chatId]);

  const loadOlder = useCallback(() => {
    const wanted = chatId === null ? null : pageBefore(oldest(latest.current), PAGE);
    if (!wanted) return;
    setLoading(true);
    entriesOf(chatId!, wanted)
      .then((entries) => hear({ kind: "entries", entries }))
      .catch((error: unknown) => error instanceof Refusal && setRefusal(error))
      .finally(() => setLoading(false));
  }, [chatId]);

  const isWhole = pageBefore(oldest(thread), PAGE) === null;
  return { thread, connection, refusal, loadOlder: isWhole || isLoading ? null : loadOlder };
}

export function pathOf(chatId: string): string {
  return `/v1/chats/${encodeURIComponent(chatId)}`;
}

/** Read the newest entries; gives the number of the last one. */
async function firstPage(chatId: string, signal: AbortSignal, hear: (news: News) => void): Promise<number> {
  const chat = await get<ChatView>(pathOf(chatId), signal);
  const wanted = pageBefore(chat.n_entries + 1, PAGE);
  const entries = wanted ? await entriesOf(chatId, wanted, signal) : [];
  if (signal.aborted) return 0;
  hear({ kind: "entries", entries });
  hear({ kind: "state", chat });
  return newest({ ...EMPTY, entries });
}

async function entriesOf(
  chatId: string,
  wanted: { after: number; limit: number },
  signal?: AbortSignal,
): Promise<readonly Entry[]> {
  const path = `${pathOf(chatId)}/entries?after=${wanted.after}&limit=${wanted.limit}`;
  return (await get<EntryPage>(path, signal)).items;
}

function newsOf(event: ServerEvent): News | null {
  switch (event.kind) {
    case "entry":
      return { kind: "entries", entries: [JSON.parse(event.data) as Entry] };
    case "text":
      return { kind: "text", ...(JSON.parse(event.data) as { offset: number; text: string }) };
    case "state":
      return { kind: "state", chat: JSON.parse(event.data) as ChatView };
    default:
      return null;
  }
}
