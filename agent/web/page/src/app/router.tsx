// Where the page is: the address alone says it, so links can be shared and "back" works.

import { useSyncExternalStore, type AnchorHTMLAttributes, type MouseEvent } from "react";

const watchers = new Set<() => void>();
window.addEventListener("popstate", () => tell());

export function navigate(to: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  tell();
}

/** Path and query as they are now. */
export function useAddress(): { path: string; query: URLSearchParams } {
  const address = useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => location.pathname + location.search,
  );
  const [path = "/", query = ""] = address.split("?", 2);
  return { path, query: new URLSearchParams(query) };
}

/** The same address with one value of its query changed; null takes it out. */
export function withQuery(name: string, value: string | null): string {
  const query = new URLSearchParams(location.search);
  if (value === null) query.delete(name);
  else query.set(name, value);
  const text = query.toString();
  return location.pathname + (text ? `?${text}` : "");
}

export function Link({ href, ...rest }: AnchorHTMLAttributes<HTMLAnchorElement> & { href: string }) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    rest.onClick?.(event);
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !isPlain || !href.startsWith("/")) return;
    event.preventDefault();
    navigate(href);
  };
  return <a {...rest} href={href} onClick={follow} />;
}

export const sessionAddress = (id: string): string => `/sessions/${encodeURIComponent(id)}`;
export const trialAddress = (id: string): string => `/trials/${encodeURIComponent(id)}`;
export const runAddress = (id: string): string => `/runs/${encodeURIComponent(id)}`;
/** In the place of a chat's id: one that is made when something is said. */
export const NEW_CHAT = "new";
/** A trial's id begins with that of its session. */
export const sessionOfTrial = (id: string): string => id.replace(/-t\d+$/, "");
export const chatAddress = (id: string): string => `/chats/${encodeURIComponent(id)}`;

function tell(): void {
  for (const watcher of watchers) watcher();
}
