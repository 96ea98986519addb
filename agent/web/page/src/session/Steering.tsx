// Saying something to a session under way. What it does is told in its revisions, with who said it.

import { useState, type FormEvent } from "react";

import { post, Refusal } from "../api/client";
import type { SessionPicture } from "../api/types";
import { Panel } from "../ui/parts";
import { Words } from "../ui/Words";
import { readParams } from "./steering";

type Kind = "hypothesis" | "forbid" | "allow" | "budget" | "take_over" | "hand_back";

const KINDS: { kind: Kind; name: string; placeholder: string }[] = [
  { kind: "hypothesis", name: "Expect", placeholder: "A wider layer needs a smaller lr" },
  { kind: "forbid", name: "Forbid", placeholder: "lr > 0.1" },
  { kind: "allow", name: "Allow again", placeholder: "lr > 0.1" },
  { kind: "budget", name: "Set a budget", placeholder: "Why" },
  { kind: "take_over", name: "Take over", placeholder: "Why: only people suggest from now on" },
  { kind: "hand_back", name: "Hand back", placeholder: "Why" },
];
const BUDGETS = ["trials", "wall_minutes", "device_seconds", "tokens", "cost_usd"];

export function Steering({ picture, said }: { picture: SessionPicture; said(): void }) {
  const [kind, setKind] = useState<Kind>("hypothesis");
  const [answer, setAnswer] = useState<{ text: string; isBad: boolean } | null>(null);
  const sessionId = picture.session.session_id;
  const offered = KINDS.filter(
    (one) =>
      (one.kind !== "take_over" || !picture.is_taken_over) &&
      (one.kind !== "hand_back" || picture.is_taken_over) &&
      (one.kind !== "allow" || picture.forbidden.length > 0),
  );
  const chosen = offered.find((one) => one.kind === kind) ?? offered[0];
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const word = wordOf(new FormData(form), chosen?.kind ?? "hypothesis", picture);
    if (typeof word === "string") {
      setAnswer({ text: word, isBad: true });
      return;
    }
    try {
      const [made] = await post<{ words: string }[]>(`/v1/sessions/${encodeURIComponent(sessionId)}/steer`, { words: [word] });
      setAnswer({ text: made?.words ?? "said", isBad: false });
      form.reset();
      said();
    } catch (error) {
      setAnswer({ text: error instanceof Refusal ? error.message : String(error), isBad: true });
    }
  };
  if (picture.session.state === "finished") return null;
  return (
    <Panel title="Steer">
      {picture.forbidden.length > 0 && (
        <p className="small">
          Forbidden:{" "}
          {picture.forbidden.map((one) => (
            <code key={one} className="condition">
              <Words text={one} />
            </code>
          ))}
        </p>
      )}
      <form className="steer" onSubmit={(event) => void submit(event)}>
        <select aria-label="What to say" value={chosen?.kind} onChange={(event) => setKind(event.target.value as Kind)}>
          {offered.map((one) => (
            <option key={one.kind} value={one.kind}>
              {one.name}
            </option>
          ))}
        </select>
        {chosen?.kind === "budget" && (
          <div className="row">
            <select name="budget" aria-label="Budget">
              {BUDGETS.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
            <input name="value" aria-label="New limit" placeholder="New limit; empty: none" inputMode="decimal" />
          </div>
        )}
        <input name="text" aria-label="In words" placeholder={chosen?.placeholder} maxLength={2000} autoComplete="off" />
        {chosen?.kind === "hypothesis" && (
          <input name="params" aria-label="To try" placeholder="To try: lr=0.003 hidden=64" autoComplete="off" />
        )}
        <button type="submit">Say it</button>
      </form>
      {answer && (
        <p className={`small ${answer.isBad ? "bad" : "good"}`} role="status">
          <Words text={answer.text} />
        </p>
      )}
    </Panel>
  );
}

function wordOf(form: FormData, kind: Kind, picture: SessionPicture): Record<string, unknown> | string {
  const text = field(form, "text");
  if (kind === "hypothesis") {
    const params = readParams(field(form, "params"), picture.parameters);
    return typeof params === "string" ? params : { kind, text, params };
  }
  if (kind !== "budget") return { kind, text };
  const value = field(form, "value");
  if (value !== "" && !Number.isFinite(Number(value))) return `a limit is a number, not ${JSON.stringify(value)}`;
  return { kind, text, budget: field(form, "budget"), value: value === "" ? null : Number(value) };
}

function field(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === "string" ? value.trim() : "";
}
