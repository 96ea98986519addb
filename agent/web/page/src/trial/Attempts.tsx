import { Panel, Chip, Time } from "../ui/parts";
import { duration } from "../ui/numbers";
import { Words } from "../ui/Words";
import type { Attempt, Job, TrialDetail } from "./types";
import { reasonWords } from "./words";

/** The jobs that carried it and their attempts: when, where, how each ended, and for whom it had to leave. */
export function Attempts({ detail, now }: { detail: TrialDetail; now: number }) {
  return (
    <Panel title="Attempts">
      {detail.jobs.length === 0 && <p className="quiet">No job was submitted yet.</p>}
      {detail.jobs.map((job) => (
        <JobAttempts key={job.job_id} job={job} now={now} />
      ))}
    </Panel>
  );
}

function JobAttempts({ job, now }: { job: Job; now: number }) {
  return (
    <section className="job" aria-label={`Job ${job.job_id}`}>
      <p className="row">
        <strong>{job.job_id}</strong> <span className="quiet">{job.role}</span>
        {job.state && <Chip kind={job.state}>{job.state}</Chip>}
        {job.mlflow_url && (
          <a href={job.mlflow_url} rel="noreferrer" target="_blank">
            MLflow run
          </a>
        )}
        {!job.mlflow_url && job.run_id && <span className="quiet">MLflow run {job.run_id.slice(0, 8)}, not there yet</span>}
      </p>
      {job.problem && <p className="quiet">{job.problem}</p>}
      {job.state_reason && job.state !== "succeeded" && !job.attempts.some((one) => one.evidence === job.state_reason) && (
        <p className="reason">
          <Words text={job.state_reason} />
        </p>
      )}
      {job.suggestion && (
        <p>
          <Words text={`${job.suggestion.why} Try ${job.suggestion.change} = ${job.suggestion.new} (was ${job.suggestion.old}).`} />
        </p>
      )}
      {job.attempts.length > 0 && <Timeline attempts={job.attempts} from={job.submitted_at ?? 0} now={now} />}
      <ol className="attempts">
        {job.attempts.map((one) => (
          <AttemptLine key={one.attempt} attempt={one} now={now} />
        ))}
      </ol>
    </section>
  );
}

function AttemptLine({ attempt, now }: { attempt: Attempt; now: number }) {
  const began = attempt.started_at ?? attempt.ordered_at;
  const devices = attempt.placements.map((part) => `${part.node_id}:${part.devices.join(",")}`).join(" ");
  return (
    <li value={attempt.attempt}>
      <Time at={began} /> <span className="quiet">for</span> {duration((attempt.ended_at ?? now) - began)}{" "}
      <Chip kind={attempt.outcome ?? "running"}>{attempt.outcome ?? "running"}</Chip>{" "}
      <span className="quiet">on {devices || "no device"}</span>
      {attempt.exit_reason && attempt.exit_reason !== "completed" && <> {reasonWords(attempt.exit_reason)}</>}
      {attempt.beneficiary && <>: job {attempt.beneficiary}</>}
      {attempt.checkpoint_step != null && <span className="quiet"> checkpoint at step {attempt.checkpoint_step}</span>}
      {attempt.exit_code != null && attempt.exit_code !== 0 && <span className="quiet"> exit code {attempt.exit_code}</span>}
      {attempt.evidence && (
        <pre className="evidence">
          <Words text={attempt.evidence} />
        </pre>
      )}
    </li>
  );
}

const WIDTH = 600;

/** Waiting and running beside each other, from submission to the end (or now). */
function Timeline({ attempts, from, now }: { attempts: readonly Attempt[]; from: number; now: number }) {
  const until = Math.max(...attempts.map((one) => one.ended_at ?? now), from + 1);
  const place = (at: number) => (Math.max(at - from, 0) / (until - from)) * WIDTH;
  return (
    <svg className="timeline" viewBox={`0 0 ${WIDTH} 18`} preserveAspectRatio="none" role="img" aria-label="When it ran">
      <rect className="waits" x="0" y="8" width={WIDTH} height="2" />
      {attempts.map((one) => {
        const x = place(one.started_at ?? one.ordered_at);
        const width = Math.max(place(one.ended_at ?? now) - x, 2);
        return <rect key={one.attempt} className={`ran ${one.outcome ?? "running"}`} x={x} y="2" width={width} height="14" />;
      })}
    </svg>
  );
}
