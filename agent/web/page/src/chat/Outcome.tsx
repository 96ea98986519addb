// What a tool gave: short words, a table, a plot. All of it is untrusted.

import { useState } from "react";

import { figure } from "../ui/numbers";
import { Plot } from "../ui/Plot";
import { Words } from "../ui/Words";
import { aligned } from "./aligned";
import { Id, idLike } from "./Id";
import type { Cell, ResultPart } from "./parts";

const ROWS_FIRST = 20;

export function Outcome({ text, came }: { text: string; came: ResultPart | null }) {
  return (
    <div className="outcome">
      {text && (
        <pre className={came?.is_error ? "words bad" : "words"}>
          <Words text={text} />
        </pre>
      )}
      {came?.table && <ResultTable table={came.table} />}
      {came?.plot && <ResultPlot plot={came.plot} />}
    </div>
  );
}

function ResultTable({ table }: { table: NonNullable<ResultPart["table"]> }) {
  const [isWhole, setWhole] = useState(false);
  const rows = isWhole ? table.rows : table.rows.slice(0, ROWS_FIRST);
  const isNumber = table.columns.map((_, i) => table.rows.some((row) => typeof row[i] === "number"));
  const hidden = table.rows.length - rows.length;
  return (
    <div className="scroll" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead>
          <tr>
            {table.columns.map((name, i) => (
              <th key={i} className={isNumber[i] ? "number" : undefined}>
                <Words text={name} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, column) => (
                <td key={column} className={isNumber[column] ? "number" : undefined}>
                  <CellView cell={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {hidden > 0 && (
        <button type="button" className="plain" onClick={() => setWhole(true)}>
          {hidden} more rows
        </button>
      )}
    </div>
  );
}

function CellView({ cell }: { cell: Cell }) {
  if (cell === null) return <span className="quiet">-</span>;
  if (typeof cell === "number") return <span title={String(cell)}>{figure(cell)}</span>;
  if (typeof cell === "boolean") return cell ? "yes" : "no";
  const cite = idLike(cell);
  return cite ? <Id cite={cite} /> : <Words text={cell} />;
}

function ResultPlot({ plot }: { plot: NonNullable<ResultPart["plot"]> }) {
  const { x, lines } = aligned(plot.series);
  if (!x.length) return <p className="quiet">There is nothing to draw yet.</p>;
  return (
    <>
      <p className="plot-title">
        <Words text={plot.title} />
      </p>
      <Plot x={x} lines={lines} xLabel={plot.x_label} yLabel={plot.y_label} title={plot.title} height={180} />
    </>
  );
}
