// A question before something is done: what it costs, whom it hits, how long there is to answer, and the answer.

import { useEffect, useId, useState } from "react";

import { post, Refusal } from "../api/client";
import { duration, figure } from "../ui/numbers";
import { Chip, Time } from "../ui/parts";
import { Words } from "../ui/Words";
import { Id, idLike } from "./Id";
import type { AnswerPart, AskPart, Entry } from "./parts";
import { pathOf } from "./useThread";

interface Props {
  chatId: string;
  ask: Entry;
  asked: AskPart;
  answer: Entry | null;
  answered: AnswerPart | null;
  canAct: boolean;
}

export function Approval({ chatId, ask, asked, answer, answered, canAct }: Props) {
  return (
    <section className={`approval ${answered?.answer ?? "open"}`} aria-label={`Question ${ask.number}`}>
      <header className="row">
        <strong>
          <Words text={ask.text} />
        </strong>
        <span className="spacer" />
        {answered ? <Outcome answered={answered} /> : <Chip kind="asking">asks</Chip>}
      </header>
      <p className="why">
        <Words text={asked.why} />
      </p>
      <Costs asked={asked} />
      {answer && answered && <Answered answer={answer} answered={answered} />}
      {!answered && canAct && <Choice chatId={chatId} number={ask.number} expiresAt={asked.expires_at} />}
      {!answered && !canAct && <p className="quiet">A reader's link can not answer this.</p>}
    </section>
  );
}

function Outcome({ answered }: { answered: AnswerPart }) {
  if (answered.answer === "approve") return <Chip kind="supported">approved</Chip>;
  return answered.answer === "deny" ? <Chip kind="denied">denied</Chip> : <Chip kind="stopped">expired</Chip>;
}

function Answered({ answer, answered }: { answer: Entry; answered: AnswerPart }) {
  if (answered.answer === "expired") return <p className="quiet">Nobody answered in time; it was not done.</p>;
  return (
    <p className="quiet">
      {answered.answer === "approve" ? "Approved" : "Denied"} by <Words text={answer.by} />, <Time at={answer.at} />
      {answered.note && (
        <>
          : <Words text={answered.note} />
        </>
      )}
    </p>
  );
}

function Costs({ asked }: { asked: AskPart }) {
  const { device_seconds: seconds, cost_usd: usd, victims } = asked;
  return (
    <>
      <dl className="costs">
        {seconds != null && (
          <div>
            <dt>device time</dt>
            <dd>{duration(seconds)}</dd>
          </div>
        )}
        {usd != null && (
          <div>
            <dt>cost</dt>
            <dd>${figure(usd)}</dd>
          </div>
        )}
        {Object.entries(asked.arguments).map(([name, value]) => (
          <div key={name}>
            <dt>
              <Words text={name} />
            </dt>
            <dd>
              <Words text={typeof value === "string" ? value : JSON.stringify(value)} />
            </dd>
          </div>
        ))}
      </dl>
      {(victims ?? []).length > 0 && (
        <div className="victims">
          <h4>Would be preempted or cancelled</h4>
          <ul>
            {(victims ?? []).map((victim) => (
              <li key={victim.job_id}>
                <Victim id={victim.job_id} /> <Words text={victim.what} />
                {victim.lost_s != null && <span className="quiet">, loses {duration(victim.lost_s)} of work</span>}
              </li>
            ))}
          </ul>
        </div>
      )}
    </>
  );
}

function Victim({ id }: { id: string }) {
  const cite = idLike(id);
  return cite ? <Id cite={cite} /> : <Words text={id} />;
}

function Choice({ chatId, number, expiresAt }: { chatId: string; number: number; expiresAt: number }) {
  const [note, setNote] = useState("");
  const [sent, setSent] = useState<"approve" | "deny" | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const left = useSecondsUntil(expiresAt);
  const label = useId();
  const send = (answer: "approve" | "deny") => {
    setSent(answer);
    setRefusal(null);
    post(`${pathOf(chatId)}/approvals/${number}`, { answer, ...(note.trim() ? { note: note.trim() } : {}) }).catch(
      (error: unknown) => {
        setSent(null);
        if (error instanceof Refusal) setRefusal(error);
      },
    );
  };
  const isClosed = sent !== null || left <= 0;
  return (
    <div className="choice">
      <label htmlFor={label} className="hidden">
        Note
      </label>
      <input
        id={label}
        value={note}
        maxLength={2000}
        placeholder="A note, if you like"
        disabled={isClosed}
        onChange={(event) => setNote(event.target.value)}
      />
      <button type="button" className="primary" disabled={isClosed} onClick={() => send("approve")}>
        Approve
      </button>
      <button type="button" disabled={isClosed} onClick={() => send("deny")}>
        Deny
      </button>
      <span className={left < 60 ? "left soon" : "left"} role="timer">
        {left > 0 ? `${clock(left)} left` : "the time to answer is over"}
      </span>
      {refusal && (
        <p className="bad" role="alert">
          {refusal.message}
        </p>
      )}
    </div>
  );
}

function useSecondsUntil(at: number): number {
  const [now, setNow] = useState(() => Date.now() / 1000);
  const isOver = at <= now;
  useEffect(() => {
    if (isOver) return;
    const timer = setInterval(() => setNow(Date.now() / 1000), 500);
    return () => clearInterval(timer);
  }, [isOver]);
  return Math.max(0, at - now);
}

function clock(seconds: number): string {
  const whole = Math.ceil(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
