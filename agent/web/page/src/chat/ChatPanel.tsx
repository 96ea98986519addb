// One chat: what was said and done, the reply as it is written, and where one writes. Without a chat yet, its beginning.

import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode, type UIEvent } from "react";

import { post, Refusal } from "../api/client";
import { useCanAct } from "../api/role";
import { Chip } from "../ui/parts";
import { Words } from "../ui/Words";
import { Composer } from "./Composer";
import { Draft as DraftLine } from "./Id";
import { Draft, ItemView } from "./Lines";
import type { ChatView } from "./parts";
import { items } from "./turns";
import { pathOf, useThread } from "./useThread";
import "./chat.css";

const NEAR_END_PX = 80;

interface Props {
  /** null: it is made when something is said. */
  chatId: string | null;
  /** What a new chat is about; null: nothing in particular. */
  sessionId: string | null;
  /** A chat was made. */
  onChat(chatId: string): void;
  /** Whenever the chat has changed so that lists of chats may show it differently. */
  onChange?(): void;
  /** Buttons at the head. */
  aside?: ReactNode;
}

export function ChatPanel({ chatId, sessionId, onChat, onChange, aside }: Props) {
  const { thread, connection, refusal, loadOlder } = useThread(chatId);
  const canAct = useCanAct();
  const [text, setText] = useState("");
  const [stopRefusal, setStopRefusal] = useState<Refusal | null>(null);
  const shown = useMemo(() => items(thread.entries), [thread.entries]);
  const last = useMemo(() => thread.entries.findLast((entry) => entry.kind === "said")?.text ?? "", [thread.entries]);
  const { chat } = thread;
  const isUnderWay = chat !== null && chat.state !== "idle";

  const changed = useRef(onChange);
  changed.current = onChange;
  useEffect(() => {
    changed.current?.();
  }, [chat?.updated_at, chat?.state, chat?.title]);

  const draft = useCallback((line: string) => {
    setText(line);
    document.querySelector<HTMLTextAreaElement>("[data-chat-input]")?.focus();
  }, []);
  const say = async (said: string, key: string) => {
    let id = chatId;
    if (id === null) {
      const made = await post<ChatView>("/v1/chats", sessionId === null ? {} : { session_id: sessionId });
      id = made.chat_id;
    }
    await post(`${pathOf(id)}/say`, { text: said, key });
    if (id !== chatId) onChat(id);
  };
  const stop = () => {
    setStopRefusal(null);
    post(`${pathOf(chatId!)}/stop`).catch((error: unknown) => error instanceof Refusal && setStopRefusal(error));
  };

  return (
    <section className="chat" aria-label="Chat">
      <header className="chat-head">
        <h2>
          <Words text={chat?.title || (chatId === null ? "New chat" : chatId)} />
        </h2>
        {isUnderWay && <Chip kind={chat.state}>{chat.state}</Chip>}
        <span className="spacer" />
        {aside}
      </header>
      <DraftLine value={canAct ? draft : null}>
        <Scroll end={thread.entries.at(-1)?.number ?? 0} draft={thread.draft} first={thread.entries[0]?.number ?? 0}>
          {loadOlder && (
            <button type="button" className="plain older" onClick={loadOlder}>
              Older entries
            </button>
          )}
          {shown.map((item) => (
            <ItemView key={item.key} chatId={chatId!} item={item} canAct={canAct} />
          ))}
          {thread.draft && <Draft text={thread.draft} model={chat?.model ?? null} />}
          {chat?.state === "working" && !thread.draft && <p className="aside quiet pulse">working…</p>}
          {(chatId === null || chat?.n_entries === 0) && <Beginning sessionId={sessionId ?? chat?.session_id ?? null} />}
        </Scroll>
      </DraftLine>
      <Standing connection={chatId === null ? "open" : connection} refusal={refusal ?? stopRefusal} />
      {canAct ? (
        <Composer
          text={text}
          onText={setText}
          say={say}
          stop={isUnderWay ? stop : null}
          closed={closedBecause(chat)}
          hasModel={chat === null || chat.model !== null}
          last={last}
          isFirst={chatId === null}
        />
      ) : (
        <p className="read-only quiet">This link may read only. The owner's, by `nightlab web`, may talk too.</p>
      )}
    </section>
  );
}

function closedBecause(chat: ChatView | null): string | null {
  if (chat?.state === "working") return "A turn is under way; it can be stopped.";
  return chat?.state === "asking" ? "It waits for an answer to the question above." : null;
}

function Standing({ connection, refusal }: { connection: string; refusal: Refusal | null }) {
  if (connection === "waiting") return <p className="standing warn">Reconnecting… what is missed is caught up.</p>;
  if (!refusal || refusal.status === 0) return null;
  return (
    <p className="standing bad" role="alert">
      {refusal.message}
    </p>
  );
}

function Beginning({ sessionId }: { sessionId: string | null }) {
  return (
    <div className="beginning quiet">
      <p>{sessionId ? `About session ${sessionId}.` : "About all sessions and jobs."} Ask in your own words, or begin with</p>
      <ul>
        <li>
          <code>/help</code> all commands
        </li>
        <li>
          <code>/jobs</code> what runs and what waits
        </li>
        <li>
          <code>/best</code> the best so far
        </li>
      </ul>
      <p>Whatever costs, stops or changes something asks you first.</p>
    </div>
  );
}

interface ScrollProps {
  first: number;
  end: number;
  draft: string;
  children: ReactNode;
}

/** Stays at the end while one reads there, and where one was when older entries come above. */
function Scroll({ first, end, draft, children }: ScrollProps) {
  const place = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const before = useRef({ first, height: 0 });
  useLayoutEffect(() => {
    const box = place.current!;
    if (end === 0) isAtEnd.current = true;
    const older = before.current.first > first && before.current.first > 0;
    if (older) box.scrollTop += box.scrollHeight - before.current.height;
    else if (isAtEnd.current) box.scrollTop = box.scrollHeight;
    before.current = { first, height: box.scrollHeight };
  }, [first, end, draft]);
  useEffect(() => {
    const box = place.current!;
    const size = new ResizeObserver(() => {
      if (isAtEnd.current) box.scrollTop = box.scrollHeight;
      before.current.height = box.scrollHeight;
    });
    size.observe(box);
    size.observe(box.firstElementChild!);
    return () => size.disconnect();
  }, []);
  const hear = ({ currentTarget: box }: UIEvent<HTMLDivElement>) => {
    isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PX;
  };
  return (
    <div className="entries" ref={place} onScroll={hear} tabIndex={0} role="log" aria-label="Entries">
      <div className="entries-inside">{children}</div>
    </div>
  );
}
