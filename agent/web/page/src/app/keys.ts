// Keys for the whole page. Not heard while somebody types.

import { useEffect } from "react";

export type Keys = Record<string, (event: KeyboardEvent) => void>;
const PAIR_MS = 1200;

/** `{"/": ..., "g h": ...}`: one key, or two after each other. */
export function useKeys(keys: Keys): void {
  useEffect(() => {
    let first: { key: string; at: number } | null = null;
    const hear = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const pair = first && event.timeStamp - first.at < PAIR_MS ? `${first.key} ${event.key}` : null;
      const action = (pair && keys[pair]) || keys[event.key];
      first = { key: event.key, at: event.timeStamp };
      if (!action) return;
      event.preventDefault();
      first = null;
      action(event);
    };
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, [keys]);
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}
