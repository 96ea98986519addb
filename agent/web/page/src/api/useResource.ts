// What the API says at a path, read again when something happens. No polling.

import { useCallback, useEffect, useRef, useState } from "react";

import { listen } from "./activity";
import { get, Refusal } from "./client";

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
  const reading = useRef<{ again: boolean } | null>(null);
  const current = useRef(path);
  current.current = path;

  const reload = useCallback(() => {
    if (path === null) return;
    if (reading.current) {
      reading.current.again = true;
      return;
    }
    const mine = { again: false };
    reading.current = mine;
    get<T>(path)
      .then(
        (data) => current.current === path && setKnown({ path, data, refusal: null }),
        (error: unknown) => {
          if (current.current !== path || !(error instanceof Refusal)) return;
          setKnown((before) => ({ path, data: before.path === path ? before.data : null, refusal: error }));
        },
      )
      .finally(() => {
        if (reading.current === mine) reading.current = null;
        if (mine.again && current.current === path) reload();
      });
  }, [path]);

  useEffect(() => {
    reading.current = null;
    reload();
    if (sessionId === null) return;
    return listen((event) => {
      if (event === "connected" || sessionId === undefined || event.session_id === sessionId) reload();
    });
  }, [reload, sessionId]);

  return { data: known.path === path ? known.data : null, refusal: known.path === path ? known.refusal : null, reload };
}
