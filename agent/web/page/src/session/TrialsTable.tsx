// The trials of a session: searched and sorted by the service, so that it is the same for ten and for ten thousand.

import { useEffect, useState } from "react";

import type { SessionPicture, TrialLine, TrialTable } from "../api/types";
import { useResource } from "../api/useResource";
import { Link, trialAddress } from "../app/router";
import { duration, figure } from "../ui/numbers";
import { Chip, Panel } from "../ui/parts";
import { Words } from "../ui/Words";

const PAGE = 25;
const TYPING_MS = 200;
type Order = "number" | "value" | "device_seconds" | "suggested_by" | "state";

export function TrialsTable({ picture }: { picture: SessionPicture }) {
  const [typed, setTyped] = useState("");
  const [words, setWords] = useState("");
  const [order, setOrder] = useState<Order>("number");
  const [descending, setDescending] = useState(true);
  const [offset, setOffset] = useState(0);
  const id = picture.session.session_id;
  useEffect(() => {
    const timer = window.setTimeout(() => {
      setWords(typed.trim());
      setOffset(0);
    }, TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [typed]);
  const query = new URLSearchParams({
    words,
    order,
    descending: String(descending),
    offset: String(offset),
    limit: String(PAGE),
  });
  const { data } = useResource<TrialTable>(`/v1/sessions/${encodeURIComponent(id)}/trial-table?${query}`, id);
  const [kept, setKept] = useState<TrialTable | null>(null);
  useEffect(() => {
    if (data) setKept(data);
  }, [data]);
  const table = data ?? kept;
  if (!table || table.n_all === 0) return null;
  const names = Object.keys(picture.parameters);
  const sort = (by: Order) => {
    setDescending(by === order ? !descending : by === "value" ? picture.direction === "maximize" : true);
    setOrder(by);
    setOffset(0);
  };
  const head = (by: Order, name: string, className = "") => (
    <th className={className} aria-sort={order === by ? (descending ? "descending" : "ascending") : "none"}>
      <button type="button" className="plain" onClick={() => sort(by)}>
        {name}
        <span aria-hidden="true">{order === by ? (descending ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
  return (
    <Panel
      title="Trials"
      aside={
        <input
          type="search"
          data-trial-search
          aria-label="Search trials"
          placeholder="Search (t): failed optuna…"
          value={typed}
          maxLength={200}
          onChange={(event) => setTyped(event.target.value)}
        />
      }
    >
      <div className="scroll">
        <table className="trials">
          <thead>
            <tr>
              {head("number", "Trial")}
              {head("state", "State")}
              {head("value", picture.metric, "number")}
              {names.map((name) => (
                <th key={name} className="number">
                  <Words text={name} />
                </th>
              ))}
              <th className="number">Seed</th>
              {head("suggested_by", "Suggested by")}
              {head("device_seconds", "Device time", "number")}
            </tr>
          </thead>
          <tbody>
            {table.items.map((line) => (
              <Row key={line.trial_id} line={line} names={names} />
            ))}
          </tbody>
        </table>
      </div>
      <div className="row small">
        <span className="quiet">
          {table.n_found === 0
            ? `None of ${table.n_all} trials`
            : `${offset + 1} to ${offset + table.items.length} of ${table.n_found}`}
          {table.n_found > 0 && table.n_found < table.n_all ? `, ${table.n_all} in all` : ""}
        </span>
        <button type="button" disabled={offset === 0} onClick={() => setOffset(Math.max(offset - PAGE, 0))}>
          Back
        </button>
        <button type="button" disabled={offset + PAGE >= table.n_found} onClick={() => setOffset(offset + PAGE)}>
          Next
        </button>
      </div>
    </Panel>
  );
}

const PURPOSES: Record<string, string> = { search: "", replicate: "fresh seed", held_out: "held-out look" };

function Row({ line, names }: { line: TrialLine; names: string[] }) {
  const why = line.state === "invalid" ? [line.exit_reason, line.note].filter(Boolean).join(": ") : line.why;
  return (
    <tr>
      <td>
        <Link href={trialAddress(line.trial_id)}>{line.trial_id}</Link>
      </td>
      <td title={why}>
        <Chip kind={line.state}>{line.state}</Chip>
        {line.state === "invalid" && line.exit_reason && (
          <span className="bad small">
            {" "}
            <Words text={line.exit_reason} />
          </span>
        )}
        {PURPOSES[line.purpose] && <span className="quiet small"> {PURPOSES[line.purpose]}</span>}
      </td>
      <td
        className={line.purpose === "held_out" ? "number quiet" : "number"}
        title={line.purpose === "held_out" ? "of the held-out metric" : undefined}
      >
        {figure(line.value)}
      </td>
      {names.map((name) => {
        const value = line.params[name];
        return (
          <td key={name} className="number">
            {typeof value === "number" ? figure(value) : <Words text={value == null ? "-" : String(value)} />}
          </td>
        );
      })}
      <td className="number">{line.seed}</td>
      <td>
        <Words text={line.suggested_by} />
        {line.is_idle_work && <span className="quiet small"> idle time</span>}
        {line.code && <span className="quiet small"> {line.code}</span>}
      </td>
      <td className="number">{line.device_seconds > 0 ? duration(line.device_seconds) : "-"}</td>
    </tr>
  );
}
