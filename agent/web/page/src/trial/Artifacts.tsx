import { useState } from "react";

import { useResource } from "../api/useResource";
import { Panel } from "../ui/parts";
import { Words } from "../ui/Words";
import { trialPath, type ArtifactFolder, type TrialDetail } from "./types";
import { sizeWords } from "./words";

/** The files of its MLflow run, one folder at a time. */
export function Artifacts({ detail }: { detail: TrialDetail }) {
  const [folder, setFolder] = useState("");
  const path = trialPath(detail.trial.trial_id, "artifacts", { folder });
  const { data, refusal, reload } = useResource<ArtifactFolder>(path, null);
  const parts = folder === "" ? [] : folder.split("/");
  return (
    <Panel
      title="Artifacts"
      aside={
        <button type="button" className="plain" onClick={reload}>
          Read again
        </button>
      }
    >
      {parts.length > 0 && (
        <p className="row">
          <button type="button" className="plain" onClick={() => setFolder(parts.slice(0, -1).join("/"))}>
            ← up
          </button>
          <Words text={folder} className="quiet" />
        </p>
      )}
      {refusal && <p className="problem">{refusal.message}</p>}
      {data?.problem && <p className="problem">{data.problem}</p>}
      {data && !data.problem && data.items.length === 0 && <p className="quiet">None.</p>}
      <ul className="files">
        {data?.items.map((item) => (
          <li key={item.path}>
            {item.is_folder ? (
              <button type="button" className="plain" onClick={() => setFolder([...parts, item.path].join("/"))}>
                <Words text={item.path} />/
              </button>
            ) : (
              <Words text={item.path} />
            )}{" "}
            <span className="quiet">{sizeWords(item.size_bytes)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
