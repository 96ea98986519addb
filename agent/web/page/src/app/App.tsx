import { lazy, Suspense, useMemo, useState, type FormEvent, type ReactNode } from "react";

import { useConnection } from "../api/activity";
import { Refusal } from "../api/client";
import { keepToken, token } from "../api/token";
import type { SessionSummary } from "../api/types";
import { useResource } from "../api/useResource";
import { HomePage } from "../home/HomePage";
import { Notice } from "../ui/parts";
import { useKeys } from "./keys";
import { Link, navigate, useAddress } from "./router";
import { chosenTheme, chooseTheme, nextTheme } from "./theme";

const SessionPage = lazy(() => import("../session/SessionPage"));
const TrialPage = lazy(() => import("../trial/TrialPage"));
const ChatPage = lazy(() => import("../chat/ChatPage"));

export function App() {
  const { path } = useAddress();
  useKeys(
    useMemo(
      () => ({
        "g h": () => navigate("/"),
        "/": () => document.querySelector<HTMLTextAreaElement>("[data-chat-input]")?.focus(),
      }),
      [],
    ),
  );
  return (
    <>
      <TopBar />
      <main id="main" tabIndex={-1}>
        <Door>
          <Suspense fallback={<p className="quiet pad">Loading…</p>}>{page(path)}</Suspense>
        </Door>
      </main>
    </>
  );
}

function page(path: string): ReactNode {
  const [, room = "", raw = "", ...more] = path.split("/");
  const id = decoded(raw);
  if (path === "/") return <HomePage />;
  if (id && more.length === 0) {
    if (room === "sessions") return <SessionPage key={id} sessionId={id} />;
    if (room === "trials") return <TrialPage key={id} trialId={id} />;
    if (room === "chats") return <ChatPage key={id} chatId={id} />;
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

function TopBar() {
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
      <span className="spacer" />
      <ConnectionMark />
      <button type="button" className="plain" onClick={change} title="Light, dark, or as the system says">
        {theme === "system" ? "Auto" : theme === "dark" ? "Dark" : "Light"}
      </button>
    </header>
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
