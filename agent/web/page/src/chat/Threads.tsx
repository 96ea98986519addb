// The chats there are, the ones spoken in last first, found by their words.

import { useEffect, useState, type ReactNode } from "react";

import { useResource } from "../api/useResource";
import { Link } from "../app/router";
import { Chip, Time } from "../ui/parts";
import { Words } from "../ui/Words";
import type { ChatView } from "./parts";
import "./beside.css";

const TYPING_MS = 200;

interface Props {
  /** Only those about this session; null: all. */
  sessionId: string | null;
  current?: string | null;
  addressOf(chatId: string): string;
  /** A new one means: read the list again. */
  version?: number;
  children?: ReactNode;
}

export function Threads({ sessionId, current, addressOf, version, children }: Props) {
  const [typed, setTyped] = useState("");
  const search = useSettled(typed.trim(), TYPING_MS);
  const query = new URLSearchParams({ limit: "100" });
  if (sessionId !== null) query.set("session_id", sessionId);
  if (search) query.set("search", search);
  const { data, refusal, reload } = useResource<readonly ChatView[]>(`/v1/chats?${query}`, null);
  useEffect(() => {
    if (version) reload();
  }, [reload, version]);
  return (
    <nav className="threads" aria-label="Chats">
      <div className="row">
        <input
          type="search"
          aria-label="Search chats"
          placeholder="Search chats"
          value={typed}
          maxLength={200}
          onChange={(event) => setTyped(event.target.value)}
        />
        {children}
      </div>
      {refusal && <p className="bad">{refusal.message}</p>}
      {data?.length === 0 && <p className="quiet">{search ? "None has these words." : "No chat yet."}</p>}
      <ul>
        {data?.map((chat) => (
          <li key={chat.chat_id}>
            <Link
              href={addressOf(chat.chat_id)}
              className="thread"
              aria-current={chat.chat_id === current ? "page" : undefined}
            >
              <span className="title">
                <Words text={chat.title || "Nothing said yet"} />
              </span>
              <span className="quiet about">
                {chat.session_id && <span>{chat.session_id}</span>}
                <Time at={chat.updated_at} />
                {chat.state !== "idle" && <Chip kind={chat.state}>{chat.state}</Chip>}
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function useSettled(value: string, ms: number): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
