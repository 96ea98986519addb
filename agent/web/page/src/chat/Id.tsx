import { createContext, use } from "react";

import { Link, runAddress, sessionAddress, trialAddress } from "../app/router";
import type { Cite } from "./citing";

/** Puts a line into the box where one writes; null where there is none. */
export const Draft = createContext<((line: string) => void) | null>(null);

/** An id that exists, as a link to where it is shown. A job has no page of its own: the chat explains it. */
export function Id({ cite }: { cite: Cite }) {
  const draft = use(Draft);
  switch (cite.kind) {
    case "session":
      return <Link href={sessionAddress(cite.id)}>{cite.id}</Link>;
    case "trial":
      return <Link href={trialAddress(cite.id)}>{cite.id}</Link>;
    case "job":
      if (!draft) return <span className="id">{cite.id}</span>;
      return (
        <button type="button" className="link" title={`/explain ${cite.id}`} onClick={() => draft(`/explain ${cite.id}`)}>
          {cite.id}
        </button>
      );
    case "run":
      return (
        <Link href={runAddress(cite.id)} className="id" title={`MLflow run ${cite.id}`}>
          {cite.id.slice(0, 8)}
        </Link>
      );
  }
}

const SHAPES: readonly [RegExp, Cite["kind"]][] = [
  [/^s\d+$/, "session"],
  [/^s\d+-t\d+$/, "trial"],
  [/^j\d+$/, "job"],
];

/** What a cell of a table names, by its looks; null: no id. */
export function idLike(text: string): Cite | null {
  const found = SHAPES.find(([shape]) => shape.test(text));
  return found ? { kind: found[1], id: text } : null;
}
