// A page with the chat beside it. The address says which chat is open, so it can be shared: `?chat=c1`.

import { lazy, Suspense, type ReactNode } from "react";

import { navigate, NEW_CHAT, useAddress, withQuery } from "../app/router";

import "./beside.css";

const Beside = lazy(() => import("./Beside"));

/** Chats are about this session. */
export function WithChat({ sessionId, children }: { sessionId: string; children: ReactNode }) {
  const { query } = useAddress();
  const chat = query.get("chat");
  return (
    <div className={chat === null ? "with-chat closed" : "with-chat"}>
      <div className="beside-chat">{children}</div>
      {chat === null ? (
        <button type="button" className="open-chat" onClick={() => navigate(withQuery("chat", NEW_CHAT))}>
          Chat <kbd>/</kbd>
        </button>
      ) : (
        <aside className="chat-aside" aria-label="Chat beside">
          <Suspense fallback={<p className="quiet pad">Loading…</p>}>
            <Beside sessionId={sessionId} chat={chat} />
          </Suspense>
        </aside>
      )}
    </div>
  );
}
