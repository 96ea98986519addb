/**
 * A small subset of Markdown as a tree: paragraphs, headings, lists, tables, code, bold, emphasis. Everything else,
 * HTML above all, stays the text that it is. Links are shown with their address and lead nowhere.
 */

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong"; parts: Inline[] }
  | { kind: "emphasis"; parts: Inline[] };

export type Block =
  | { kind: "paragraph"; parts: Inline[] }
  | { kind: "heading"; level: number; parts: Inline[] }
  | { kind: "code"; text: string; language: string }
  | { kind: "list"; isOrdered: boolean; start: number; items: Block[][] }
  | { kind: "quote"; blocks: Block[] }
  | { kind: "table"; header: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

const MOST_NESTED = 6;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULE = /^ {0,3}([-*_])( *\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const TABLE_LINE = /^\s*\|?(\s*:?-+:?\s*\|)+\s*:?-*:?\s*$/;

export function parse(text: string): Block[] {
  return blocksOf(text.replace(/\r\n?/g, "\n").split("\n"), 0);
}

function blocksOf(lines: string[], depth: number): Block[] {
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const [block, next] = blockAt(lines, at, depth);
    if (block) blocks.push(block);
    at = next;
  }
  return blocks;
}

function blockAt(lines: string[], at: number, depth: number): [Block | null, number] {
  const line = lines[at]!;
  if (!line.trim()) return [null, at + 1];
  const fence = FENCE.exec(line);
  if (fence) return codeAt(lines, at, fence[1]!, fence[2]!);
  const heading = HEADING.exec(line);
  if (heading) return [{ kind: "heading", level: heading[1]!.length, parts: inline(heading[2]!) }, at + 1];
  if (RULE.test(line)) return [{ kind: "rule" }, at + 1];
  if (isTable(lines, at)) return tableAt(lines, at);
  if (depth < MOST_NESTED && QUOTE.test(line)) return quoteAt(lines, at, depth);
  if (depth < MOST_NESTED && ITEM.test(line)) return listAt(lines, at, depth);
  return paragraphAt(lines, at);
}

function codeAt(lines: string[], at: number, fence: string, language: string): [Block, number] {
  const end = lines.findIndex((line, i) => i > at && line.trim().startsWith(fence) && !line.trim().replace(/[`~]/g, ""));
  const to = end < 0 ? lines.length : end;
  return [{ kind: "code", text: lines.slice(at + 1, to).join("\n"), language }, end < 0 ? to : to + 1];
}

function isTable(lines: string[], at: number): boolean {
  return lines[at]!.includes("|") && at + 1 < lines.length && TABLE_LINE.test(lines[at + 1]!);
}

function tableAt(lines: string[], at: number): [Block, number] {
  let to = at + 2;
  while (to < lines.length && lines[to]!.includes("|") && lines[to]!.trim()) to += 1;
  const header = cells(lines[at]!);
  const rows = lines.slice(at + 2, to).map((line) => {
    const found = cells(line);
    return header.map((_, column) => found[column] ?? []);
  });
  return [{ kind: "table", header, rows }, to];
}

function cells(line: string): Inline[][] {
  return line
    .trim()
    .replace(/^\|/, "")
    .replace(/(^|[^\\])\|$/, "$1")
    .split(/(?<!\\)\|/)
    .map((cell) => inline(cell.trim().replace(/\\\|/g, "|")));
}

function quoteAt(lines: string[], at: number, depth: number): [Block, number] {
  let to = at;
  while (to < lines.length && QUOTE.test(lines[to]!)) to += 1;
  const inside = lines.slice(at, to).map((line) => line.replace(QUOTE, ""));
  return [{ kind: "quote", blocks: blocksOf(inside, depth + 1) }, to];
}

function listAt(lines: string[], at: number, depth: number): [Block, number] {
  const isOrdered = isNumber(lines[at]!);
  const start = isOrdered ? Number.parseInt(ITEM.exec(lines[at]!)![2]!, 10) : 1;
  const items: Block[][] = [];
  let to = at;
  while (to < lines.length) {
    const item = ITEM.exec(lines[to]!);
    if (!item || isNumber(lines[to]!) !== isOrdered || RULE.test(lines[to]!)) break;
    const inside = [item[3]!];
    to += 1;
    while (to < lines.length && belongs(lines, to)) {
      inside.push(lines[to]!.replace(/^ {1,4}/, ""));
      to += 1;
    }
    items.push(blocksOf(inside, depth + 1));
    while (to + 1 < lines.length && !lines[to]!.trim() && ITEM.test(lines[to + 1]!)) to += 1;
  }
  return [{ kind: "list", isOrdered, start, items }, to];
}

function isNumber(line: string): boolean {
  return /^ {0,3}\d/.test(line);
}

/** Whether a line goes on with the item above it: it is indented, or an empty line before one that is. */
function belongs(lines: string[], at: number): boolean {
  if (/^ {2,}\S/.test(lines[at]!)) return true;
  return !lines[at]!.trim() && at + 1 < lines.length && /^ {2,}\S/.test(lines[at + 1]!);
}

function paragraphAt(lines: string[], at: number): [Block, number] {
  let to = at + 1;
  while (to < lines.length && lines[to]!.trim() && !begins(lines, to)) to += 1;
  return [{ kind: "paragraph", parts: inline(lines.slice(at, to).join("\n")) }, to];
}

function begins(lines: string[], at: number): boolean {
  const line = lines[at]!;
  return [FENCE, HEADING, ITEM, QUOTE, RULE].some((form) => form.test(line)) || isTable(lines, at);
}

const INLINE = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*(\S(?:[\s\S]*?\S)?)\*\*|(?<![\w*])\*(\S(?:[^*]*?\S)?)\*(?![\w*])/g;

function inline(text: string, depth = 0): Inline[] {
  if (depth >= MOST_NESTED) return [{ kind: "text", text }];
  const parts: Inline[] = [];
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > from) parts.push({ kind: "text", text: text.slice(from, found.index) });
    if (found[2] !== undefined) parts.push({ kind: "code", text: found[2].replace(/^ (.*) $/, "$1") });
    else if (found[3] !== undefined) parts.push({ kind: "strong", parts: inline(found[3], depth + 1) });
    else parts.push({ kind: "emphasis", parts: inline(found[4]!, depth + 1) });
    from = found.index + found[0].length;
  }
  if (from < text.length) parts.push({ kind: "text", text: text.slice(from) });
  return parts;
}
