/** Ids in a text: those that exist become links, those that do not are marked as not found. */

export interface Cite {
  readonly kind: "session" | "trial" | "job" | "run";
  readonly id: string;
}

export type Piece = { kind: "text"; text: string } | { kind: "cite"; cite: Cite } | { kind: "unknown"; id: string };

const WORD = /[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*/g;

/** Cut a text at the ids in it. Only whole words count: `s1` is not found in `s1-t7`. */
export function cut(text: string, cites: readonly Cite[], unknown: readonly string[]): Piece[] {
  const known = new Map(cites.map((cite) => [cite.id.toLowerCase(), cite]));
  const absent = new Set(unknown.map((id) => id.toLowerCase()));
  if (!known.size && !absent.size) return [{ kind: "text", text }];
  const pieces: Piece[] = [];
  let from = 0;
  for (const found of text.matchAll(WORD)) {
    const word = found[0].toLowerCase();
    const cite = known.get(word);
    if (!cite && !absent.has(word)) continue;
    if (found.index > from) pieces.push({ kind: "text", text: text.slice(from, found.index) });
    pieces.push(cite ? { kind: "cite", cite } : { kind: "unknown", id: found[0] });
    from = found.index + found[0].length;
  }
  if (from < text.length) pieces.push({ kind: "text", text: text.slice(from) });
  return pieces;
}
