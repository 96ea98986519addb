// What there is: sessions, and the chats about them, found by their words.

import { useState } from "react";

import type { SessionSummary } from "../api/types";
import { useResource } from "../api/useResource";
import { chatAddress, Link, NEW_CHAT, sessionAddress } from "../app/router";
import { Threads } from "../chat/Threads";
import { Chip, Notice, Time } from "../ui/parts";
import { Words } from "../ui/Words";
import "./home.css";

const MANY = 8;

export function HomePage() {
  const { data, refusal } = useResource<readonly SessionSummary[]>("/v1/sessions");
  if (refusal && !data) return <Notice title="No answer">{refusal.message}</Notice>;
  return (
    <div className="page home">
      <section aria-label="Sessions">{data && <Sessions all={data} />}</section>
      <section aria-label="Chats">
        <h1>Chats</h1>
        <Threads sessionId={null} addressOf={chatAddress}>
          <Link href={chatAddress(NEW_CHAT)} className="button">
            New chat
          </Link>
        </Threads>
      </section>
    </div>
  );
}

function Sessions({ all }: { all: readonly SessionSummary[] }) {
  const [typed, setTyped] = useState("");
  const found = all.filter((one) => isAbout(one, typed.trim().toLowerCase()));
  return (
    <>
      <div className="row">
        <h1>Sessions</h1>
        <span className="spacer" />
        {all.length > MANY && (
          <input
            type="search"
            aria-label="Search sessions"
            placeholder="Search sessions"
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        )}
      </div>
      {all.length === 0 && (
        <p className="quiet">
          None yet. <code>nightlab research start task.yaml</code> starts one; it shows here by itself.
        </p>
      )}
      {all.length > 0 && found.length === 0 && <p className="quiet">No session has these words.</p>}
      <ul className="sessions">
        {found.map((one) => (
          <li key={one.session_id}>
            <Link href={sessionAddress(one.session_id)} className="card session">
              <span className="row">
                <strong>{one.session_id}</strong>
                <Words text={one.task_name} />
                <span className="spacer" />
                <Chip kind={one.state}>{one.state}</Chip>
              </span>
              {(one.result || one.message) && (
                <span className="found">
                  <Words text={one.result?.sentence ?? one.message} />
                </span>
              )}
              <span className="quiet">
                {one.n_trials} {one.n_trials === 1 ? "trial" : "trials"}, since <Time at={one.created_at} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}

function isAbout(session: SessionSummary, words: string): boolean {
  const told = `${session.session_id} ${session.task_name} ${session.state} ${session.result?.sentence ?? ""}`.toLowerCase();
  return words.split(/\s+/).every((word) => told.includes(word));
}
