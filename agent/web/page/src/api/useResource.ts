// What the API says at a path, read again when something happens. No polling.

import { useCallback, useEffect, useRef, useState } from "react";

import { listen } from "./activity";
import { get, Refusal } from "./client";
import { Rereading } from "./rereading";

export interface Resource<T> {
  data: T | null;
  /** The last reading failed; `data` is what was known before. */
  refusal: Refusal | null;
  /** Read it again now. */
  reload(): void;
}

/**
 * @param path null: nothing is read yet.
 * @param sessionId events of this session alone mean that it has changed; undefined: those of any do; null: none do.
 */
export function useResource<T>(path: string | null, sessionId?: string | null): Resource<T> {
  const [known, setKnown] = useState<{ path: string | null; data: T | null; refusal: Refusal | null }>({
    path,
    data: null,
    refusal: null,
  });
  const rereading = useRef<Rereading | null>(null);
  const reload = useCallback(() => rereading.current?.ask(), []);

  useEffect(() => {
    if (path === null) return;
    const ended = new AbortController();
    const mine = new Rereading(() =>
      get<T>(path, ended.signal).then(
        (data) => {
          if (!ended.signal.aborted) setKnown({ path, data, refusal: null });
        },
        (error: unknown) => {
          if (ended.signal.aborted || !(error instanceof Refusal)) return;
          setKnown((before) => ({ path, data: before.path === path ? before.data : null, refusal: error }));
        },
      ),
    );
    rereading.current = mine;
    mine.ask();
    const deaf =
      sessionId === null
        ? () => undefined
        : listen((heard) => {
            if (heard === "connected" || sessionId === undefined || heard.sessionId === sessionId) mine.ask();
          });
    return () => {
      deaf();
      mine.end();
      ended.abort();
    };
  }, [path, sessionId]);

  return { data: known.path === path ? known.data : null, refusal: known.path === path ? known.refusal : null, reload };
}
