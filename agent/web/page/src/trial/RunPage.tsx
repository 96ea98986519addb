import { useResource } from "../api/useResource";
import type { components } from "../api/wire";
import { Notice } from "../ui/parts";
import { Words } from "../ui/Words";

/** An MLflow run that somebody named: what it is, and the way to MLflow's own page of it. */
export default function RunPage({ runId }: { runId: string }) {
  const path = `/v1/runs/${encodeURIComponent(runId)}`;
  const { data, refusal } = useResource<components["schemas"]["RunPlace"]>(path, null);
  if (!data) return refusal ? <Notice title="This run can not be shown">{refusal.message}</Notice> : null;
  return (
    <div className="page">
      <h1>
        MLflow run <Words text={data.name} />
      </h1>
      <p className="quiet">
        experiment <Words text={data.experiment} />, <code>{data.run_id}</code>
      </p>
      {data.mlflow_url ? (
        <a href={data.mlflow_url} rel="noreferrer" target="_blank">
          Open it in MLflow
        </a>
      ) : (
        <p className="quiet">MLflow has not got it yet, or there is no MLflow.</p>
      )}
    </div>
  );
}
