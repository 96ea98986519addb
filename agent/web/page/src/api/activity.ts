// The one stream of what sessions do, shared by all parts of the page while any of them listens.

import { useEffect, useSyncExternalStore } from "react";

import { openStream, type Connection } from "./stream";
import type { Activity } from "./types";

type Listener = (event: Activity | "connected") => void;

const listeners = new Set<Listener>();
const watchers = new Set<() => void>();
let close: (() => void) | null = null;
let state: Connection = "connecting";

/** Hear each event, and `connected` whenever the stream (again) stands: what was read before then may be old. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  if (close === null) {
    close = openStream("/v1/events", {
      event: (event) => tell(JSON.parse(event.data) as Activity),
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

function tell(event: Activity | "connected"): void {
  for (const listener of [...listeners]) listener(event);
}
