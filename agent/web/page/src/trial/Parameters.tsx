import { Link, trialAddress } from "../app/router";
import { Panel } from "../ui/parts";
import { Words } from "../ui/Words";
import type { TrialDetail } from "./types";

type Value = string | number | boolean | null;

/** The configuration, with what differs from the trial that it was made from (else from the default) marked. */
export function Parameters({ detail }: { detail: TrialDetail }) {
  const { parameters, parent_id: parent } = detail;
  const nChanged = parameters.filter((row) => row.value !== row.parent).length;
  const against = parent ? <Link href={trialAddress(parent)}>{parent}</Link> : "the default";
  return (
    <Panel
      title="Configuration"
      aside={
        <span className="quiet">
          {nChanged} of {parameters.length} differ from {against}
        </span>
      }
    >
      {parameters.length === 0 ? (
        <p className="quiet">The task searches no parameters.</p>
      ) : (
        <div className="scroll">
          <table>
            <thead>
              <tr>
                <th>parameter</th>
                <th className="number">value</th>
                {parent && <th className="number">{parent}</th>}
                <th className="number">default</th>
              </tr>
            </thead>
            <tbody>
              {parameters.map((row) => (
                <tr key={row.name} className={row.value === row.parent ? "" : "differs"}>
                  <td>
                    <Words text={row.name} />
                    {row.value !== row.parent && <span className="mark"> differs</span>}
                  </td>
                  <Cell value={row.value} />
                  {parent && <Cell value={row.parent} isQuiet />}
                  <Cell value={row.default} isQuiet />
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

function Cell({ value, isQuiet = false }: { value: Value; isQuiet?: boolean }) {
  const whole = value === null ? "none" : String(value);
  const short = typeof value === "number" ? String(Number(value.toPrecision(6))) : whole;
  return (
    <td className={isQuiet ? "number quiet" : "number"} title={short === whole ? undefined : whole}>
      <Words text={short} />
    </td>
  );
}
