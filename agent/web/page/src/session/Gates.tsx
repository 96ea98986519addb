// What waits for a person: each question with what it costs, and Approve and Deny.

import { useState } from "react";

import { post, Refusal } from "../api/client";
import type { GateDiff, GateView } from "../api/types";
import { useResource } from "../api/useResource";
import { duration } from "../ui/numbers";
import { Panel, Time } from "../ui/parts";
import { Words } from "../ui/Words";

export function Gates({ sessionId }: { sessionId: string }) {
  const { data, reload } = useResource<GateView[]>(`/v1/gates?session_id=${encodeURIComponent(sessionId)}`, sessionId);
  if (!data || data.length === 0) return null;
  return (
    <Panel title={data.length === 1 ? "Waits for your answer" : `${data.length} questions wait for your answer`}>
      <ul className="gates">
        {data.map((view) => (
          <Question key={view.gate.gate_id} view={view} answered={reload} />
        ))}
      </ul>
    </Panel>
  );
}

function Question({ view, answered }: { view: GateView; answered(): void }) {
  const [note, setNote] = useState("");
  const [said, setSaid] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const { gate } = view;
  const answer = async (word: "approve" | "deny") => {
    setBusy(true);
    try {
      await post(`/v1/gates/${gate.gate_id}/${word}`, note.trim() ? { note: note.trim() } : {});
      setSaid(null);
    } catch (error) {
      setSaid(error instanceof Refusal ? error.message : String(error));
    } finally {
      setBusy(false);
      answered();
    }
  };
  return (
    <li>
      <p>
        <Words text={gate.text} />
      </p>
      <p className="quiet small">
        {gate.cost_device_s === null ? "cost not known" : `about ${duration(gate.cost_device_s)} of device time`}; answer by{" "}
        <Time at={gate.answer_by} />, else it counts as {gate.unanswered === "approve" ? "approved" : "denied"}
      </p>
      {gate.trial?.facts.edited && <Change gateId={gate.gate_id} />}
      <div className="row">
        <input
          aria-label="Note"
          placeholder="Note (whoever suggested it reads it)"
          value={note}
          maxLength={2000}
          onChange={(event) => setNote(event.target.value)}
        />
        <button type="button" className="primary" disabled={isBusy} onClick={() => void answer("approve")}>
          Approve
        </button>
        <button type="button" disabled={isBusy} onClick={() => void answer("deny")}>
          Deny
        </button>
      </div>
      {said && (
        <p className="bad small" role="alert">
          {said}
        </p>
      )}
    </li>
  );
}

/** What edited code changes, read when somebody wants to see it. Nobody has vouched for it. */
function Change({ gateId }: { gateId: number }) {
  const [isOpen, setOpen] = useState(false);
  const { data, refusal } = useResource<GateDiff>(isOpen ? `/v1/gates/${gateId}/diff` : null, null);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>What it changes</summary>
      {refusal && <p className="bad small">{refusal.message}</p>}
      {data && (
        <pre className="change">
          {data.diff.split("\n").map((line, at) => (
            <span key={at} className={KINDS[line.slice(0, 1)]}>
              <Words text={line} />
              {"\n"}
            </span>
          ))}
        </pre>
      )}
      {data?.is_cut && <p className="warn small">It is longer than this.</p>}
    </details>
  );
}

const KINDS: Record<string, string> = { "+": "good", "-": "bad", "@": "quiet" };
