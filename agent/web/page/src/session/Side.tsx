// What stands at the side of a session: budgets, who suggested what, how well predictions came true, what happens.

import { useEffect, useState } from "react";

import { listen } from "../api/activity";
import type { Activity, SessionPicture } from "../api/types";
import { Link, trialAddress } from "../app/router";
import { duration, figure } from "../ui/numbers";
import { Panel } from "../ui/parts";
import { Words } from "../ui/Words";
import { Frame } from "./Frame";
import { linear } from "./scale";

const MOST_LINES = 80;

export function Budgets({ picture }: { picture: SessionPicture }) {
  const shown = picture.budgets.filter((cap) => cap.limit !== null || cap.used > 0);
  return (
    <Panel title="Budgets">
      <dl className="budgets">
        {shown.map((cap) => (
          <div key={cap.name}>
            <dt>{NAMES[cap.name] ?? cap.name}</dt>
            <dd>
              {amount(cap.name, cap.used)}
              <span className="quiet"> {cap.limit === null ? "no limit" : `of ${amount(cap.name, cap.limit)}`}</span>
            </dd>
            {cap.limit !== null && (
              <meter
                min={0}
                max={1}
                high={0.9}
                value={cap.limit > 0 ? Math.min(cap.used / cap.limit, 1) : 1}
                aria-label={`${cap.name} used`}
              />
            )}
          </div>
        ))}
      </dl>
      {picture.spent && (
        <p className="warn small">
          Nothing more is launched: <Words text={picture.spent} />
        </p>
      )}
      {picture.model.n_calls > 0 && <p className="quiet small">{picture.model.n_calls} calls of a language model</p>}
    </Panel>
  );
}

const NAMES: Record<string, string> = {
  trials: "search trials",
  wall_minutes: "wall time",
  device_seconds: "device time",
  tokens: "tokens",
  cost_usd: "cost",
};

function amount(name: string, value: number): string {
  if (name === "wall_minutes") return duration(value * 60);
  if (name === "device_seconds") return duration(value);
  if (name === "cost_usd") return `$${value.toFixed(2)}`;
  return value.toLocaleString();
}

export function Arms({ picture }: { picture: SessionPicture }) {
  if (picture.arms.length === 0) return null;
  return (
    <Panel title="Suggested by">
      <table>
        <thead>
          <tr>
            <th>Who</th>
            <th className="number">Trials</th>
            <th className="number">Best</th>
          </tr>
        </thead>
        <tbody>
          {picture.arms.map((arm) => (
            <tr key={arm.suggested_by}>
              <td>
                <Words text={arm.suggested_by} />
                {picture.control_arm.includes(arm.suggested_by) && <span className="quiet small"> control</span>}
              </td>
              <td className="number">{arm.n_trials}</td>
              <td className="number">{figure(arm.best_value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

export function Calibration({ picture }: { picture: SessionPicture }) {
  const { calibration } = picture;
  const axis = linear(0, 1, 4);
  return (
    <Panel title="Predictions">
      <p className="small quiet">{calibration.words}</p>
      {calibration.bins.length > 0 && (
        <Frame title={`Predicted against came true: ${calibration.words}`} x={axis} y={axis} height={190} xLabel="predicted">
          {(places) => (
            <>
              <line className="diagonal" x1={places.x(0)} y1={places.y(0)} x2={places.x(1)} y2={places.y(1)} />
              {calibration.bins.map((bin) => {
                const x = places.x(bin.predicted);
                const words = `${bin.n} predicted at ${figure(100 * bin.predicted)} %: ${figure(100 * bin.came_true)} % came true`;
                return (
                  <g key={bin.low} className="calibrated">
                    <line x1={x} x2={x} y1={places.y(bin.interval[0])} y2={places.y(bin.interval[1])} />
                    <circle cx={x} cy={places.y(bin.came_true)} r={Math.min(3 + Math.sqrt(bin.n), 8)} />
                    <title>{words}</title>
                  </g>
                );
              })}
            </>
          )}
        </Frame>
      )}
    </Panel>
  );
}

/** What the session did and why, the newest first; new lines come with the events themselves. */
export function Feed({ sessionId, known }: { sessionId: string; known: readonly Activity[] }) {
  const [heard, setHeard] = useState<Activity[]>([]);
  useEffect(
    () =>
      listen((change) => {
        if (change === "connected" || change.sessionId !== sessionId) return;
        const { line } = change;
        if (line) setHeard((before) => [...before, line].slice(-MOST_LINES));
      }),
    [sessionId],
  );
  const lines = merged(known, heard);
  return (
    <Panel title="Activity">
      {lines.length === 0 && <p className="quiet">Nothing has happened yet.</p>}
      <ol className="feed" aria-live="polite" aria-relevant="additions">
        {lines.map((line) => (
          <li key={line.seq}>
            <time className="quiet" dateTime={new Date(line.at * 1000).toISOString()}>
              {new Date(line.at * 1000).toLocaleTimeString()}
            </time>{" "}
            <span className="step">{line.step}</span> <Words text={line.text} />
            {line.trial_id && (
              <>
                {" "}
                <Link href={trialAddress(line.trial_id)}>{line.trial_id}</Link>
              </>
            )}
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function merged(known: readonly Activity[], heard: readonly Activity[]): Activity[] {
  const by = new Map([...known, ...heard].map((line) => [line.seq, line]));
  return [...by.values()].sort((a, b) => b.seq - a.seq).slice(0, MOST_LINES);
}
