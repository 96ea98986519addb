// One session: what it wants, what it found, how sure that is, what it does now, and what a person may do about it.

import { useKeys } from "../app/keys";
import type { SessionPicture } from "../api/types";
import { useResource } from "../api/useResource";
import { duration, figure } from "../ui/numbers";
import { Chip, Notice, Time } from "../ui/parts";
import { Words } from "../ui/Words";
import { BestSoFar } from "./BestSoFar";
import { Controls } from "./Controls";
import { Effects } from "./Effects";
import { Gates } from "./Gates";
import { History } from "./History";
import { PlanTree } from "./PlanTree";
import "./session.css";
import { Arms, Budgets, Calibration, Feed } from "./Side";
import { Steering } from "./Steering";
import { TrialsTable } from "./TrialsTable";

export default function SessionPage({ sessionId }: { sessionId: string }) {
  const path = `/v1/sessions/${encodeURIComponent(sessionId)}/view`;
  const { data, refusal, reload } = useResource<SessionPicture>(path, sessionId);
  useKeys(KEYS);
  if (!data) {
    if (refusal) return <Notice title={refusal.status === 404 ? "No such session" : "No answer"}>{refusal.message}</Notice>;
    return <p className="quiet pad">Reading {sessionId}…</p>;
  }
  return (
    <div className="page session-page">
      <Head picture={data} reload={reload} />
      <Trouble picture={data} />
      <div className="session-grid">
        <div className="session-main">
          <Gates sessionId={sessionId} />
          <Found picture={data} />
          <BestSoFar picture={data} />
          <PlanTree picture={data} />
          <Effects picture={data} />
          <TrialsTable picture={data} />
          <History picture={data} />
        </div>
        <aside className="session-side" aria-label="Beside the session">
          <Budgets picture={data} />
          <Steering picture={data} said={reload} />
          <Arms picture={data} />
          <Calibration picture={data} />
          <Feed sessionId={sessionId} known={data.activity} />
        </aside>
      </div>
    </div>
  );
}

const KEYS = {
  t: () => document.querySelector<HTMLInputElement>("[data-trial-search]")?.focus(),
  "g s": () => window.scrollTo({ top: 0 }),
};

function Head({ picture, reload }: { picture: SessionPicture; reload(): void }) {
  const { session } = picture;
  const counts = picture.n_by_state;
  const running = counts["launched"] ?? 0;
  return (
    <header className="session-head">
      <div>
        <h1>
          {session.session_id} <Words text={session.task_name} /> <Chip kind={session.state}>{session.state}</Chip>{" "}
          {picture.phase && session.state === "running" && <Chip kind="phase">{picture.phase.replace("_", " ")}</Chip>}
          {picture.is_paused && <Chip kind="stopping">paused</Chip>}
          {picture.is_taken_over && <Chip kind="stopping">taken over</Chip>}
        </h1>
        {picture.description && (
          <p className="lead">
            <Words text={picture.description} />
          </p>
        )}
        <p className="quiet small">
          {picture.direction} <Words text={picture.metric} />
          {picture.target !== null && `, target ${figure(picture.target)}`}
          {picture.min_effect > 0 && `, a gain counts from ${figure(picture.min_effect)}`}
          {" · "}
          {session.n_trials} search trials{running > 0 ? `, ${running} running` : ""}
          {" · begun "}
          <Time at={session.created_at} />
          {session.ended_at !== null && `, took ${duration(session.ended_at - session.created_at)}`}
        </p>
      </div>
      <Controls picture={picture} done={reload} />
    </header>
  );
}

/** What is not as it should be, and what to do. */
function Trouble({ picture }: { picture: SessionPicture }) {
  const { session } = picture;
  if (session.state === "failed") {
    return (
      <div className="banner bad" role="alert">
        <strong>The session can not go on.</strong> <Words text={session.message || "No reason was written."} />
      </div>
    );
  }
  if (session.state === "stopped" || session.state === "stopping") {
    return (
      <div className="banner warn">
        {session.state === "stopped" ? "Stopped in order; Resume goes on with it." : "It stops: running jobs finish first."}
      </div>
    );
  }
  if (session.state === "running" && !picture.is_held) {
    return (
      <div className="banner warn">
        No process works on it just now. <code>nightlab up</code> starts the services; they take it up by themselves.
      </div>
    );
  }
  return null;
}

/** The answer, by code, once there is one. */
function Found({ picture }: { picture: SessionPicture }) {
  const { result } = picture.session;
  if (!result) return null;
  return (
    <section className={`found ${result.verdict}`} aria-label="What was found">
      <Chip kind={result.verdict}>{result.verdict}</Chip> <Words text={result.sentence} />
    </section>
  );
}
