import { Link, sessionAddress, sessionOfTrial, trialAddress } from "../app/router";
import { useGrowth } from "../api/activity";
import { useResource } from "../api/useResource";
import { figure, duration } from "../ui/numbers";
import { Chip, Notice, Panel, Time } from "../ui/parts";
import { Words } from "../ui/Words";
import { Artifacts } from "./Artifacts";
import { Attempts } from "./Attempts";
import { Code } from "./Code";
import { CurvesPanel } from "./CurvesPanel";
import { LogPanel } from "./LogPanel";
import { Parameters } from "./Parameters";
import { Standing } from "./Standing";
import "./trial.css";
import { trialPath, type TrialDetail } from "./types";
import { reasonWords } from "./words";

export default function TrialPage({ trialId }: { trialId: string }) {
  const { data, refusal, reload } = useResource<TrialDetail>(trialPath(trialId, "view"), sessionOfTrial(trialId));
  useGrowth(trialId, sessionOfTrial(trialId), data?.trial.state === "launched");
  if (!data) {
    return refusal ? (
      <Notice title="This trial can not be shown">
        <p>{refusal.message}</p>
      </Notice>
    ) : null;
  }
  const hasJobs = data.jobs.length > 0 && data.runtime_problem === null;
  return (
    <div className="page trial">
      <Head detail={data} />
      {refusal && <p className="problem">{refusal.message} What you see was read before.</p>}
      {data.runtime_problem && (
        <p className="problem" role="status">
          The runtime says nothing now ({data.runtime_problem}): curves, attempts and logs are missing until it is back.{" "}
          <button type="button" onClick={reload}>
            Ask again
          </button>
        </p>
      )}
      <div className="columns">
        <div>
          <Ending detail={data} />
          {hasJobs && <CurvesPanel detail={data} />}
          <Code detail={data} />
          <LogPanel detail={data} />
        </div>
        <div>
          <Parameters detail={data} />
          <Attempts detail={data} now={Date.now() / 1000} />
          <Standing detail={data} />
          {hasJobs && <Artifacts detail={data} />}
        </div>
      </div>
    </div>
  );
}

function Head({ detail }: { detail: TrialDetail }) {
  const { trial } = detail;
  return (
    <header className="trial-head">
      <h1 className="row">
        {trial.trial_id} <Chip kind={trial.state}>{trial.state}</Chip>
        <span className="spacer" />
        <span className="value">
          <Words text={detail.metric} className="quiet" /> {figure(trial.value)}
        </span>
      </h1>
      <p>
        <Words text={detail.task_name} /> · <Link href={sessionAddress(trial.session_id)}>{trial.session_id}</Link> ·{" "}
        {trial.purpose.replaceAll("_", " ")}, seed {trial.seed} · suggested by{" "}
        <Words text={trial.suggested_by} /> <Time at={trial.proposed_at} /> · {duration(trial.device_seconds)} of device time
        {trial.facts.device_model && (
          <>
            {" "}
            on <Words text={trial.facts.device_model} />
          </>
        )}
      </p>
      {trial.why && (
        <p className="quiet">
          <Words text={trial.why} />
        </p>
      )}
      {detail.hypothesis && (
        <p className="quiet">
          tests {trial.hypothesis}: <Words text={detail.hypothesis} />
        </p>
      )}
    </header>
  );
}

/** Why it has no value, and what was found out about it. */
function Ending({ detail }: { detail: TrialDetail }) {
  const { trial } = detail;
  const found = trial.facts.diagnosis;
  const isBad = trial.state === "invalid" || found || trial.facts.stopped_early;
  if (!isBad) return null;
  return (
    <Panel title="How it ended" aside={<span className="quiet">{reasonWords(trial.exit_reason)}</span>}>
      {trial.note && (
        <p>
          <Words text={trial.note} />
        </p>
      )}
      {trial.facts.stopped_early && (
        <p>
          <Words text={trial.facts.stopped_early} />
        </p>
      )}
      {found && (
        <>
          <p>
            <Chip kind="failed">{found.failure.replaceAll("_", " ")}</Chip> <Words text={found.cause} />
          </p>
          {found.suggestion && (
            <p>
              <Words text={found.suggestion} />
            </p>
          )}
          {found.evidence.length > 0 && (
            <pre className="evidence">
              <Words text={found.evidence.join("\n")} />
            </pre>
          )}
          <p className="quiet small">
            {found.is_sure ? "found" : "suspected"} by <Words text={found.made_by === "rules" ? "rules" : found.made_by} />
          </p>
        </>
      )}
      {trial.facts.fixes && (
        <p className="quiet">
          It is a try to mend <Link href={trialAddress(trial.facts.fixes)}>{trial.facts.fixes}</Link>.
        </p>
      )}
    </Panel>
  );
}
