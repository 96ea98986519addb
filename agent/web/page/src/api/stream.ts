// A stream that comes back: it goes on after the number of the last event that it gave, so nothing is missed or doubled.

import { headers, refusalOf, Refusal } from "./client";
import { EventReader, type ServerEvent } from "./sse";

export type Connection = "connecting" | "open" | "waiting" | "refused";

export interface StreamHandlers {
  event(event: ServerEvent): void;
  connection(state: Connection, refusal?: Refusal): void;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5000;
/** The service sends a sign of life each 15 s: one that is silent for longer is gone. */
const SILENT_MS = 40_000;
/** A page that nobody sees for so long reads no more until it is seen: browsers allow six connections for all pages. */
const HIDDEN_MS = 10_000;

/** Read until the function that is returned is called. `path` names where to begin; after that the last id does. */
export function openStream(path: string, handlers: StreamHandlers): () => void {
  const ended = new AbortController();
  void keepReading(path, handlers, ended.signal);
  return () => ended.abort();
}

async function keepReading(path: string, handlers: StreamHandlers, ended: AbortSignal): Promise<void> {
  let lastId: string | null = null;
  let waitMs = FIRST_WAIT_MS;
  while (!ended.aborted) {
    await seen(ended);
    if (ended.aborted) return;
    handlers.connection("connecting");
    try {
      await readOnce(path, lastId, ended, {
        open: () => {
          waitMs = FIRST_WAIT_MS;
          if (!ended.aborted) handlers.connection("open");
        },
        event: (event) => {
          if (event.id !== null) lastId = event.id;
          if (!ended.aborted) handlers.event(event);
        },
      });
    } catch (error) {
      if (ended.aborted) return;
      if (error instanceof Refusal && error.status >= 400 && error.status < 500) {
        handlers.connection("refused", error);
        return;
      }
    }
    if (ended.aborted) return;
    handlers.connection("waiting");
    await pause(waitMs * (0.5 + Math.random() / 2), ended);
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
  }
}

interface Once {
  open(): void;
  event(event: ServerEvent): void;
}

async function readOnce(path: string, lastId: string | null, ended: AbortSignal, once: Once): Promise<void> {
  const silent = new AbortController();
  const signal = AbortSignal.any([ended, silent.signal]);
  let timer = window.setTimeout(() => silent.abort(), SILENT_MS);
  let hidden: number | undefined;
  const look = () => {
    window.clearTimeout(hidden);
    if (document.hidden) hidden = window.setTimeout(() => silent.abort(), HIDDEN_MS);
  };
  document.addEventListener("visibilitychange", look);
  look();
  try {
    const sent = lastId === null ? headers() : { ...headers(), "Last-Event-ID": lastId };
    const response = await fetch(path, { headers: sent, cache: "no-store", redirect: "error", signal });
    if (!response.ok || !response.body) throw await refusalOf(response);
    once.open();
    const reader = new EventReader();
    const decoder = new TextDecoder();
    const body = response.body.getReader();
    for (;;) {
      const { done, value } = await body.read();
      if (done) return;
      window.clearTimeout(timer);
      timer = window.setTimeout(() => silent.abort(), SILENT_MS);
      for (const event of reader.feed(decoder.decode(value, { stream: true }))) once.event(event);
    }
  } finally {
    window.clearTimeout(timer);
    window.clearTimeout(hidden);
    document.removeEventListener("visibilitychange", look);
  }
}

/** Until the page is in sight. */
function seen(ended: AbortSignal): Promise<void> {
  if (!document.hidden || ended.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !ended.aborted) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    ended.addEventListener("abort", look);
  });
}

function pause(ms: number, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = window.setTimeout(resolve, ms);
    ended.addEventListener("abort", () => {
      window.clearTimeout(timer);
      resolve();
    });
  });
}
