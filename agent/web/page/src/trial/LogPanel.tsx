import { memo, useCallback, useEffect, useMemo, useRef, useState } from "react";

import { useKeys } from "../app/keys";
import { useResource } from "../api/useResource";
import { Panel } from "../ui/parts";
import { Words } from "../ui/Words";
import { logLines, nextError, type Line } from "./logLines";
import { trialPath, type Job, type LogErrors, type TrialDetail } from "./types";
import { useLog, type Source } from "./useLog";

/** What an attempt printed, errors marked: `e` and `E` go from one to the next. */
export function LogPanel({ detail }: { detail: TrialDetail }) {
  const jobs = detail.jobs.filter((job) => job.attempts.length > 0);
  const last = jobs.filter((job) => job.role === "training").at(-1) ?? jobs.at(-1);
  if (!last) {
    return (
      <Panel title="Log">
        <p className="quiet">{detail.runtime_problem ?? "Nothing has run yet."}</p>
      </Panel>
    );
  }
  return <OpenLog detail={detail} jobs={jobs} first={last} />;
}

function OpenLog({ detail, jobs, first }: { detail: TrialDetail; jobs: readonly Job[]; first: Job }) {
  const { trial_id: id, session_id: session } = detail.trial;
  const [chosen, setChosen] = useState<Source>({ jobId: first.job_id, attempt: null, stream: "main" });
  const [follows, setFollows] = useState(true);
  const [marked, setMarked] = useState<number | null>(null);
  const log = useLog(id, session, chosen, follows);
  const of = { job_id: chosen.jobId, attempt: chosen.attempt };
  const { data: errors } = useResource<LogErrors>(trialPath(id, "log-errors", of), follows ? session : null);
  const texts = useMemo(() => (errors?.lines ?? []).map((line) => line.text), [errors]);
  const lines = useMemo(() => logLines(log.text, texts), [log.text, texts]);
  const nErrors = lines.filter((line) => line.isError).length;

  const go = useCallback(
    (step: 1 | -1) => {
      const next = nextError(lines, marked, step);
      if (next !== null) setMarked(next);
    },
    [lines, marked],
  );
  useKeys(useMemo(() => ({ e: () => go(1), E: () => go(-1) }), [go]));
  const choose = (change: Partial<Source>) => {
    setMarked(null);
    setChosen((before) => ({ ...before, ...change }));
  };
  const older = async () => {
    setMarked(null);
    await log.older();
  };

  return (
    <Panel
      title="Log"
      aside={
        <span className="row tools">
          <Choice
            name="Attempt"
            value={`${chosen.jobId} ${chosen.attempt ?? ""}`}
            options={jobs.flatMap((job) => [
              [`${job.job_id} `, `${job.job_id} latest`] as const,
              ...job.attempts.map((one) => [`${job.job_id} ${one.attempt}`, `${job.job_id} attempt ${one.attempt}`] as const),
            ])}
            onChange={(value) => {
              const [jobId = "", attempt] = value.split(" ");
              choose({ jobId, attempt: attempt ? Number(attempt) : null, stream: "main" });
            }}
          />
          {log.streams.length > 1 && (
            <Choice
              name="Stream"
              value={chosen.stream}
              options={log.streams.map((name) => [name, name === "main" ? "main" : `rank ${name}`] as const)}
              onChange={(stream) => choose({ stream })}
            />
          )}
          <label>
            <input type="checkbox" checked={follows} onChange={(event) => setFollows(event.target.checked)} /> follow
          </label>
          <button type="button" onClick={() => go(1)} disabled={nErrors === 0} title="Next error (e), the one before (E)">
            {nErrors === 0 ? "no errors here" : `${nErrors} error lines`} <kbd>e</kbd>
          </button>
        </span>
      }
    >
      {log.refusal && <p className="problem">{log.refusal.message}</p>}
      <p className="row">
        <button type="button" className="plain" onClick={() => void older()} disabled={log.start <= 0 || log.isReading}>
          {log.start > 0 ? "↑ Load older" : "This is the beginning"}
        </button>
        {texts.length > 0 && nErrors === 0 && <span className="quiet">Errors are further up.</span>}
      </p>
      <Lines lines={lines} marked={marked} follows={follows && marked === null} />
      <p className="row">
        <button type="button" className="plain" onClick={() => void log.newer()} disabled={log.isComplete || log.isReading}>
          {log.isComplete ? "This is the end" : "↓ Read on"}
        </button>
      </p>
    </Panel>
  );
}

const Lines = memo(function Lines({ lines, marked, follows }: { lines: Line[]; marked: number | null; follows: boolean }) {
  const box = useRef<HTMLPreElement>(null);
  const wasAtEnd = useRef(true);
  useEffect(() => {
    const place = box.current;
    if (place && follows && wasAtEnd.current) place.scrollTop = place.scrollHeight;
  }, [lines, follows]);
  useEffect(() => {
    if (marked === null) return;
    const place = box.current;
    const line = place?.children[marked];
    if (!place || !(line instanceof HTMLElement)) return;
    place.scrollTop = line.offsetTop - place.clientHeight / 3;
    place.scrollIntoView({ block: "nearest" });
  }, [marked]);
  const scrolled = () => {
    const place = box.current;
    if (place) wasAtEnd.current = place.scrollTop + place.clientHeight >= place.scrollHeight - 20;
  };
  return (
    <pre className="log" ref={box} tabIndex={0} aria-label="Output" onScroll={scrolled}>
      {lines.length === 0 && <span className="quiet">Nothing was printed.</span>}
      {lines.map((line, index) => (
        <span key={index} className={`line${line.isError ? " error" : ""}${index === marked ? " here" : ""}`}>
          <Words text={line.text} />
          {"\n"}
        </span>
      ))}
    </pre>
  );
});

interface ChoiceProps {
  name: string;
  value: string;
  options: readonly (readonly [string, string])[];
  onChange(value: string): void;
}

function Choice({ name, value, options, onChange }: ChoiceProps) {
  return (
    <select aria-label={name} value={value} onChange={(event) => onChange(event.target.value)}>
      {options.map(([one, words]) => (
        <option key={one} value={one}>
          {words}
        </option>
      ))}
    </select>
  );
}
