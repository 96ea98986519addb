// A reply as React nodes: text nodes and a few elements, never markup of others.

import { memo, useMemo, type ReactNode } from "react";

import { Words } from "../ui/Words";
import { Id } from "./Id";
import { cut, type Cite } from "./citing";
import { parse, type Block, type Inline } from "./markdown";

interface Cited {
  cites: readonly Cite[];
  unknown: readonly string[];
}

export const Markdown = memo(function Markdown({ text, cites, unknown }: { text: string } & Cited) {
  const blocks = useMemo(() => parse(text), [text]);
  return <div className="markdown">{shown(blocks, { cites, unknown })}</div>;
});

function shown(blocks: readonly Block[], cited: Cited): ReactNode {
  return blocks.map((block, i) => <BlockView key={i} block={block} cited={cited} />);
}

function BlockView({ block, cited }: { block: Block; cited: Cited }) {
  switch (block.kind) {
    case "paragraph":
      return <p>{run(block.parts, cited)}</p>;
    case "heading":
      return (
        <p className="heading" role="heading" aria-level={Math.min(6, block.level + 2)}>
          {run(block.parts, cited)}
        </p>
      );
    case "code":
      return (
        <pre tabIndex={0}>
          <code>
            <Words text={block.text} />
          </code>
        </pre>
      );
    case "list": {
      const items = block.items.map((item, i) => <li key={i}>{tight(item, cited)}</li>);
      return block.isOrdered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
    }
    case "quote":
      return <blockquote>{shown(block.blocks, cited)}</blockquote>;
    case "table":
      return (
        <div className="scroll">
          <table>
            <thead>
              <tr>
                {block.header.map((cell, i) => (
                  <th key={i}>{run(cell, cited)}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, i) => (
                <tr key={i}>
                  {row.map((cell, column) => (
                    <td key={column}>{run(cell, cited)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr />;
  }
}

/** A list's item of one paragraph stands without the paragraph's room. */
function tight(item: readonly Block[], cited: Cited): ReactNode {
  const [first, ...more] = item;
  if (first?.kind !== "paragraph") return shown(item, cited);
  return (
    <>
      {run(first.parts, cited)}
      {shown(more, cited)}
    </>
  );
}

function run(parts: readonly Inline[], cited: Cited): ReactNode {
  return parts.map((part, i) => <InlineView key={i} part={part} cited={cited} />);
}

function InlineView({ part, cited }: { part: Inline; cited: Cited }) {
  switch (part.kind) {
    case "text":
      return <Linked text={part.text} {...cited} />;
    case "code":
      return (
        <code>
          <Linked text={part.text} {...cited} />
        </code>
      );
    case "strong":
      return <strong>{run(part.parts, cited)}</strong>;
    case "emphasis":
      return <em>{run(part.parts, cited)}</em>;
  }
}

function Linked({ text, cites, unknown }: { text: string } & Cited) {
  return cut(text, cites, unknown).map((piece, i) => {
    if (piece.kind === "cite") return <Id key={i} cite={piece.cite} />;
    if (piece.kind === "text") return <Words key={i} text={piece.text} />;
    return (
      <span key={i} className="unknown" title="Nothing of this id exists.">
        <Words text={piece.id} /> <small>not found</small>
      </span>
    );
  });
}
