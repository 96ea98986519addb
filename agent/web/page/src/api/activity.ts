// The one stream of what sessions do, shared by all parts of the page while any of them listens.

import { useEffect, useSyncExternalStore } from "react";

import { openStream, type Connection } from "./stream";
import type { Activity } from "./types";

/** Something of a session has changed: a line of what it does, or (null) what a trial of it logs and prints. */
export type Change = { sessionId: string; line: Activity | null };
type Listener = (heard: Change | "connected") => void;

const listeners = new Set<Listener>();
const watchers = new Set<() => void>();
let close: (() => void) | null = null;
let state: Connection = "connecting";

/** Hear each change, and `connected` whenever the stream (again) stands: what was read before then may be old. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  if (close === null) {
    close = openStream("/v1/events", {
      event: (event) => {
        const line = JSON.parse(event.data) as Activity;
        tell({ sessionId: line.session_id, line });
      },
      connection: (now) => {
        state = now;
        for (const watcher of watchers) watcher();
        if (now === "open") tell("connected");
      },
    });
  }
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      close?.();
      close = null;
    }
  };
}

/** How the stream stands; whoever shows it keeps it open. */
export function useConnection(): Connection {
  useEffect(() => listen(() => undefined), []);
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => state,
  );
}

/** While `isRunning`, what a trial logs and prints counts as a change of its session. */
export function useGrowth(trialId: string, sessionId: string, isRunning: boolean): void {
  useEffect(() => {
    if (!isRunning) return;
    const grown = () => tell({ sessionId, line: null });
    return openStream(`/v1/trials/${encodeURIComponent(trialId)}/growth`, {
      event: grown,
      connection: (now) => {
        if (now === "open") grown();
      },
    });
  }, [trialId, sessionId, isRunning]);
}

function tell(heard: Change | "connected"): void {
  for (const listener of [...listeners]) listener(heard);
}
