import { useState } from "react";

import { Link, trialAddress } from "../app/router";
import { figure } from "../ui/numbers";
import { Chip, Panel } from "../ui/parts";
import { Words } from "../ui/Words";
import type { TrialDetail } from "./types";

const SHOWN = 8;

/** How its configuration stands against the default, by code, and the same configuration with other seeds. */
export function Standing({ detail }: { detail: TrialDetail }) {
  const { against_default: held, replicates, metric } = detail;
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? replicates : replicates.slice(0, SHOWN);
  return (
    <Panel title="Against the default" aside={<Chip kind={tone(detail.standing)}>{detail.standing}</Chip>}>
      {held ? (
        <>
          <p>
            <Words text={held.reason} />
          </p>
          {held.estimate != null && (
            <p className="quiet">
              this minus default: {figure(held.estimate)} ({figure(held.low)} to {figure(held.high)} at{" "}
              {Math.round((held.confidence ?? 0) * 100)} %) over {held.n_pairs} pairs
            </p>
          )}
        </>
      ) : (
        <p className="quiet">
          {detail.is_default ? "This is the default." : "Not replicated beside the default: nothing can be claimed."}
          {detail.gain_over_default != null && ` With the same seed it is ${figure(detail.gain_over_default)} better.`}
        </p>
      )}
      {replicates.length > 0 && (
        <div className="scroll">
          <table>
            <thead>
              <tr>
                <th>replicate</th>
                <th className="number">seed</th>
                <th className="number">
                  <Words text={metric} />
                </th>
                <th />
              </tr>
            </thead>
            <tbody>
              {shown.map((one) => (
                <tr key={one.trial_id}>
                  <td>
                    <Link href={trialAddress(one.trial_id)}>{one.trial_id}</Link>
                  </td>
                  <td className="number">{one.seed}</td>
                  <td className="number">{figure(one.value)}</td>
                  <td>{one.state !== "measured" && <Chip kind={one.state}>{one.state}</Chip>}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {shown.length < replicates.length && (
            <button type="button" className="plain" onClick={() => setWhole(true)}>
              {replicates.length - shown.length} more
            </button>
          )}
        </div>
      )}
    </Panel>
  );
}

function tone(standing: string): string {
  if (standing.startsWith("better")) return "supported";
  if (standing.startsWith("worse")) return "refuted";
  return standing;
}
