import { useState } from "react";

import { Link, trialAddress } from "../app/router";
import { useResource } from "../api/useResource";
import { Panel } from "../ui/parts";
import { Words } from "../ui/Words";
import { trialPath, type CodeChange, type TrialDetail } from "./types";

/** What the edited code changes, line by line. */
export function Code({ detail }: { detail: TrialDetail }) {
  const edited = detail.trial.facts.edited;
  const [against, setAgainst] = useState<"parent" | "base">("parent");
  const path = edited ? trialPath(detail.trial.trial_id, "diff", { against }) : null;
  const { data, refusal } = useResource<CodeChange>(path, null);
  if (!edited) return null;
  return (
    <Panel
      title="Code"
      aside={
        <label>
          Against{" "}
          <select value={against} onChange={(event) => setAgainst(event.target.value === "base" ? "base" : "parent")}>
            <option value="parent">what it was made from</option>
            <option value="base">the base</option>
          </select>
        </label>
      }
    >
      <p>
        <Words text={edited.summary || "An edit without a summary."} />{" "}
        <span className="quiet">
          +{edited.added} -{edited.removed} lines against the base; made from{" "}
          {detail.parent_id ? <Link href={trialAddress(detail.parent_id)}>{detail.parent_id}</Link> : "the base"}
        </span>
      </p>
      {refusal && <p className="problem">{refusal.message}</p>}
      {data?.problem && <p className="problem">{data.problem}</p>}
      {data?.diff === "" && <p className="quiet">Nothing differs.</p>}
      {data?.diff && (
        <pre className="diff" tabIndex={0} aria-label="Changes">
          {data.diff.trimEnd().split("\n").map((line, index) => (
            <DiffLine key={index} line={line} />
          ))}
        </pre>
      )}
      {data?.is_cut && <p className="quiet">It is longer than this: `nightlab research diff` shows the rest.</p>}
    </Panel>
  );
}

function DiffLine({ line }: { line: string }) {
  const isHead = line.startsWith("+++") || line.startsWith("---") || line.startsWith("diff ") || line.startsWith("index ");
  const kind = isHead ? "head" : line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : line.startsWith("@@") ? "place" : "";
  return (
    <span className={`line ${kind}`}>
      <Words text={line} />
      {"\n"}
    </span>
  );
}
