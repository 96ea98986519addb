// What was said and done, entry by entry.

import { memo } from "react";

import { Chip, Time } from "../ui/parts";
import { Words } from "../ui/Words";
import { Approval } from "./Approval";
import { Markdown } from "./Markdown";
import { Outcome } from "./Outcome";
import { replyOf, resultOf, troubleOf, type CallPart, type Entry } from "./parts";
import { isSame, type Item } from "./turns";

interface Props {
  chatId: string;
  item: Item;
  canAct: boolean;
}

export const ItemView = memo(
  function ItemView({ chatId, item, canAct }: Props) {
    switch (item.kind) {
      case "line":
        return <Line entry={item.entry} />;
      case "tool":
        return <Tool item={item} />;
      case "approval":
        return (
          <Approval
            chatId={chatId}
            ask={item.ask}
            asked={item.asked}
            answer={item.answer}
            answered={item.answered}
            canAct={canAct}
          />
        );
    }
  },
  (one, other) => one.chatId === other.chatId && one.canAct === other.canAct && isSame(one.item, other.item),
);

function Line({ entry }: { entry: Entry }) {
  switch (entry.kind) {
    case "said":
      return (
        <article className="said" aria-label={`Said by ${entry.by}`}>
          <Byline entry={entry} />
          <div className="words">
            <Words text={entry.text} />
          </div>
        </article>
      );
    case "reply":
      // A model that only calls tools says nothing beside.
      return entry.text.trim() ? <Reply entry={entry} /> : null;
    case "trouble":
      return (
        <article className="trouble" role="alert">
          <strong>{TROUBLES[troubleOf(entry)?.code ?? ""] ?? "This could not be answered"}</strong>
          <div className="words">
            <Words text={entry.text} />
          </div>
        </article>
      );
    case "result":
      return (
        <div className="alone">
          <Outcome text={entry.text} came={resultOf(entry)} />
        </div>
      );
    default:
      return (
        <p className="aside quiet">
          <Words text={entry.text || entry.kind} />
        </p>
      );
  }
}

const TROUBLES: Record<string, string> = {
  no_model: "No language model is set up",
  no_tools: "Answered without looking anything up",
  over_budget: "A budget has no room for this",
  bug: "A bug of nightlab",
};

function Reply({ entry }: { entry: Entry }) {
  const reply = replyOf(entry);
  return (
    <article className="reply" aria-label={`Reply by ${entry.by}`}>
      <Byline entry={entry} />
      <Markdown text={entry.text} cites={reply?.cites ?? NONE} unknown={reply?.unknown ?? NONE} />
      {reply?.is_cut && <p className="cut">The model's answer broke off here.</p>}
    </article>
  );
}

const NONE: never[] = [];

export function Draft({ text, model }: { text: string; model: string | null }) {
  return (
    <article className="reply draft" aria-label="Reply that is being written" aria-busy="true">
      <div className="byline">
        <strong>
          <Words text={model ?? "nightlab"} />
        </strong>
      </div>
      <Markdown text={text} cites={NONE} unknown={NONE} />
    </article>
  );
}

function Byline({ entry }: { entry: Entry }) {
  return (
    <div className="byline">
      <strong>
        <Words text={entry.by} />
      </strong>
      <Time at={entry.at} />
    </div>
  );
}

function Tool({ item }: { item: Extract<Item, { kind: "tool" }> }) {
  const { called, result, came, isWanted } = item;
  const state = !result ? "working" : came?.is_error ? "failed" : "finished";
  return (
    <details className={`tool ${state}`} open={isWanted}>
      <summary>
        <span className="name">
          <Words text={called.tool} />
        </span>
        <span className="given">
          <Words text={inShort(called)} />
        </span>
        <span className="came quiet">{result ? <Words text={firstLine(result.text)} /> : "…"}</span>
        {state === "failed" && <Chip kind="failed">failed</Chip>}
      </summary>
      {Object.keys(called.arguments ?? {}).length > 0 && !isWanted && (
        <pre className="arguments">
          <Words text={JSON.stringify(called.arguments, null, 2)} />
        </pre>
      )}
      {result && <Outcome text={result.text} came={came} />}
    </details>
  );
}

function inShort(called: CallPart): string {
  return Object.entries(called.arguments ?? {})
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}
