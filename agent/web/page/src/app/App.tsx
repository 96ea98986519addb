import { lazy, Suspense, useMemo, useState, type FormEvent, type ReactNode } from "react";

import { useConnection } from "../api/activity";
import { Refusal } from "../api/client";
import { keepToken, token } from "../api/token";
import type { SessionSummary } from "../api/types";
import { useResource } from "../api/useResource";
import { WithChat } from "../chat/WithChat";
import { HomePage } from "../home/HomePage";
import { Notice } from "../ui/parts";
import { useKeys } from "./keys";
import { chatAddress, Link, navigate, NEW_CHAT, sessionAddress, sessionOfTrial, useAddress, withQuery } from "./router";
import { chosenTheme, chooseTheme, nextTheme } from "./theme";

const SessionPage = lazy(() => import("../session/SessionPage"));
const TrialPage = lazy(() => import("../trial/TrialPage"));
const RunPage = lazy(() => import("../trial/RunPage"));
const ChatPage = lazy(() => import("../chat/ChatPage"));

export function App() {
  const { path } = useAddress();
  useKeys(
    useMemo(
      () => ({
        "g s": () => navigate("/"),
        "g c": () => navigate(chatAddress(NEW_CHAT)),
        "/": toChat,
      }),
      [],
    ),
  );
  return (
    <>
      <TopBar path={path} />
      <main id="main" tabIndex={-1}>
        <Door>
          <Suspense fallback={<p className="quiet pad">Loading…</p>}>{page(path)}</Suspense>
        </Door>
      </main>
    </>
  );
}

/** Where one writes: on this page, beside it, or, where there is nothing to talk about, in a chat of its own. */
function toChat(): void {
  const box = document.querySelector<HTMLTextAreaElement>("[data-chat-input]");
  const { room } = placeOf(location.pathname);
  if (box) box.focus();
  else navigate(room === "sessions" || room === "trials" ? withQuery("chat", NEW_CHAT) : chatAddress(NEW_CHAT));
}

function placeOf(path: string): { room: string; id: string } {
  const [, room = "", raw = "", ...more] = path.split("/");
  return more.length === 0 ? { room, id: decoded(raw) } : { room: "", id: "" };
}

function page(path: string): ReactNode {
  const { room, id } = placeOf(path);
  if (path === "/") return <HomePage />;
  switch (id && room) {
    case "sessions":
      return (
        <WithChat sessionId={id}>
          <SessionPage key={id} sessionId={id} />
        </WithChat>
      );
    case "trials":
      return (
        <WithChat sessionId={sessionOfTrial(id)}>
          <TrialPage key={id} trialId={id} />
        </WithChat>
      );
    case "runs":
      return <RunPage key={id} runId={id} />;
    case "chats":
      return <ChatPage chatId={id} />;
  }
  return (
    <Notice title="There is nothing at this address">
      <Link href="/">All sessions and chats</Link>
    </Notice>
  );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

function TopBar({ path }: { path: string }) {
  const [theme, setTheme] = useState(chosenTheme);
  const change = () => {
    const next = nextTheme(theme);
    chooseTheme(next);
    setTheme(next);
  };
  return (
    <header className="topbar">
      <a className="skip" href="#main">
        To the page
      </a>
      <Link href="/" className="brand">
        nightlab
      </Link>
      <Trail path={path} />
      <span className="spacer" />
      <Link href={chatAddress(NEW_CHAT)} className="bar-link">
        Chat
      </Link>
      <ConnectionMark />
      <button type="button" className="plain" onClick={change} title="Light, dark, or as the system says">
        {theme === "system" ? "Auto" : theme === "dark" ? "Dark" : "Light"}
      </button>
    </header>
  );
}

/** Which session, and which trial of it, one looks at. */
function Trail({ path }: { path: string }) {
  const { room, id } = placeOf(path);
  if (!id || (room !== "sessions" && room !== "trials")) return null;
  const session = room === "sessions" ? id : sessionOfTrial(id);
  return (
    <nav className="trail" aria-label="Where this is">
      <Link href={sessionAddress(session)} aria-current={room === "sessions" ? "page" : undefined}>
        {session}
      </Link>
      {room === "trials" && <span aria-current="page">{id}</span>}
    </nav>
  );
}

function ConnectionMark() {
  const state = useConnection();
  const words = { connecting: "connecting…", open: "live", waiting: "reconnecting…", refused: "not admitted" }[state];
  return (
    <span className={`connection ${state}`} role="status">
      {words}
    </span>
  );
}

/** Lets those in who have a token of this service, and tells the others how to get one. */
function Door({ children }: { children: ReactNode }) {
  const asked = useResource<SessionSummary[]>(token() === null ? null : "/v1/sessions", null);
  if (token() === null) return <AskForToken why="This page needs a token of nightlab's home." />;
  if (asked.refusal?.isUnknown) return <AskForToken why="The token that this page knows is of another service." />;
  if (asked.refusal && !asked.data) return <Away refusal={asked.refusal} retry={asked.reload} />;
  return <>{children}</>;
}

function AskForToken({ why }: { why: string }) {
  const enter = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget).get("token");
    if (typeof given !== "string" || !given.trim()) return;
    keepToken(given);
    location.reload();
  };
  return (
    <Notice title="Not admitted yet">
      <p>
        {why} Open the link that <code>nightlab web</code> prints, or paste the token here.
      </p>
      <form onSubmit={enter} className="row">
        <label htmlFor="token">Token</label>
        <input id="token" name="token" type="password" autoComplete="off" spellCheck={false} />
        <button type="submit">Enter</button>
      </form>
    </Notice>
  );
}

function Away({ refusal, retry }: { refusal: Refusal; retry: () => void }) {
  return (
    <Notice title="No answer">
      <p>{refusal.message}</p>
      <button type="button" onClick={retry}>
        Try again
      </button>
    </Notice>
  );
}
