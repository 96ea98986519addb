// The search as it went: each trial, the best so far with what is believed of it, the control arm beside it.

import { useState } from "react";

import { Link, trialAddress } from "../app/router";
import type { Best, Point, SessionPicture } from "../api/types";
import { duration, figure } from "../ui/numbers";
import { Panel } from "../ui/parts";
import { Frame, type Places } from "./Frame";
import { clipped, linear, robustLimits, type Scale } from "./scale";

type Way = "place" | "device_seconds";

export function BestSoFar({ picture }: { picture: SessionPicture }) {
  const [way, setWay] = useState<Way>("place");
  const { progress, points } = picture;
  if (progress.best.length === 0) {
    return (
      <Panel title="Best so far">
        <p className="quiet">{whyNothing(picture)}</p>
      </Panel>
    );
  }
  const { x, y } = axes(picture, way);
  const last = progress.best[progress.best.length - 1];
  return (
    <Panel title="Best so far" aside={<WaySwitch way={way} choose={setWay} />}>
      <Legend picture={picture} />
      <Frame
        title={`Best ${picture.metric} so far: ${figure(last?.value)} after ${progress.n_measured} measured trials`}
        x={x}
        y={y}
        height={300}
        xLabel={way === "place" ? "search trials, in the order in which they ended" : "device time of the session, in seconds"}
        roomRight={picture.session.result ? 96 : 14}
      >
        {(places) => (
          <>
            <Band records={progress.best} way={way} places={places} end={x.high} />
            {progress.default && (
              <line
                className="default-line"
                x1={places.left}
                x2={places.right}
                y1={places.y(progress.default.value)}
                y2={places.y(progress.default.value)}
              />
            )}
            <path className="control-line" d={steps(progress.control, way, places, x.high)} />
            <path className="best-line" d={steps(progress.best, way, places, x.high)} />
            {points.map((point) => (
              <Mark key={point.trial_id} point={point} way={way} places={places} y={y} picture={picture} />
            ))}
            <Confirmed picture={picture} places={places} y={y} />
          </>
        )}
      </Frame>
      {picture.n_points > points.length && (
        <p className="quiet small">
          {points.length} of {picture.n_points} trials are drawn: evenly many, and all that were the best.
        </p>
      )}
    </Panel>
  );
}

function axes(picture: SessionPicture, way: Way): { x: Scale; y: Scale } {
  const { progress, points, session } = picture;
  const values = points.flatMap((point) => (point.value === null ? [] : [point.value]));
  const ends = [session.result?.best_mean, session.result?.default_mean].flatMap((one) => (one ? [one.low, one.high] : []));
  const keep = [...progress.best.map((one) => one.value), ...ends];
  if (progress.default) keep.push(progress.default.value);
  const last = progress.best[progress.best.length - 1];
  if (last?.low != null && last.high != null) keep.push(last.low, last.high);
  const most = way === "place" ? progress.n_measured : progress.device_seconds;
  return { x: linear(0, Math.max(most, 1), 8), y: linear(...robustLimits(values, keep), 6) };
}

function Mark({
  point,
  way,
  places,
  y,
  picture,
}: {
  point: Point;
  way: Way;
  places: Places;
  y: Scale;
  picture: SessionPicture;
}) {
  const at = places.x(way === "place" ? point.place + (point.value === null ? 0.5 : 0) : point.device_seconds);
  const isControl = picture.control_arm.includes(point.suggested_by);
  const isBest = picture.progress.best.some((one) => one.trial_id === point.trial_id);
  const words = `${point.trial_id} ${figure(point.value)}, suggested by ${point.suggested_by}`;
  if (point.value === null) {
    return (
      <Link href={trialAddress(point.trial_id)} tabIndex={-1} aria-label={`${point.trial_id} failed`}>
        <text className="failed-mark" x={at} y={places.bottom - 4} textAnchor="middle">
          ×<title>{`${point.trial_id} gave no value`}</title>
        </text>
      </Link>
    );
  }
  const place = clipped(y, point.value);
  const className = `mark ${isBest ? "best" : isControl ? "control" : "other"}${place.beyond ? " beyond" : ""}`;
  return (
    <Link href={trialAddress(point.trial_id)} tabIndex={isBest ? 0 : -1} aria-label={words}>
      <circle className={className} cx={at} cy={places.bottom - place.at * (places.bottom - places.top)} r={isBest ? 4.5 : 3}>
        <title>{words}</title>
      </circle>
    </Link>
  );
}

/** What is believed by now of each configuration, for as long as it led. */
function Band({ records, way, places, end }: { records: readonly Best[]; way: Way; places: Places; end: number }) {
  return records.map((one, at) => {
    if (one.low === null || one.high === null) return null;
    const next = records[at + 1];
    const [from, to] = [places.x(one[way]), places.x(next ? next[way] : end)];
    const [top, bottom] = [Math.max(places.y(one.high), places.top), Math.min(places.y(one.low), places.bottom)];
    if (bottom <= top) return null;
    return (
      <rect key={one.trial_id} className="band" x={from} y={top} width={Math.max(to - from, 2)} height={bottom - top}>
        <title>{`${one.trial_id}: ${figure(one.mean)} [${figure(one.low)}, ${figure(one.high)}]`}</title>
      </rect>
    );
  });
}

/** The means over fresh seeds, which had no part in the choice. */
function Confirmed({ picture, places, y }: { picture: SessionPicture; places: Places; y: Scale }) {
  const result = picture.session.result;
  if (!result) return null;
  const sides = [
    { mean: result.default_mean, kind: "default", name: "default" },
    { mean: result.best_mean, kind: "best", name: "best" },
  ];
  return sides.map(({ mean, kind, name }, at) => {
    if (!mean || (at === 0 && result.best_configuration === result.default_configuration)) return null;
    const x = places.right + 30 + at * 44;
    const [low, high] = [clipped(y, mean.low).at, clipped(y, mean.high).at];
    const up = (part: number) => places.bottom - part * (places.bottom - places.top);
    return (
      <g key={name} className={`confirmed ${kind}`}>
        <line x1={x} x2={x} y1={up(low)} y2={up(high)} />
        <circle cx={x} cy={up(clipped(y, mean.estimate).at)} r={4.5} />
        <text x={x} y={places.bottom + 15} textAnchor="middle">
          {name}
        </text>
        <title>{`${name} on ${mean.n} fresh seeds: ${figure(mean.estimate)} [${figure(mean.low)}, ${figure(mean.high)}]`}</title>
      </g>
    );
  });
}

function steps(records: readonly Best[], way: Way, places: Places, end: number): string {
  let path = "";
  records.forEach((one, at) => {
    const y = Math.min(Math.max(places.y(one.value), places.top), places.bottom);
    path += at === 0 ? `M${places.x(one[way])} ${y}` : `H${places.x(one[way])}V${y}`;
  });
  return path && `${path}H${places.x(end)}`;
}

function WaySwitch({ way, choose }: { way: Way; choose(way: Way): void }) {
  return (
    <span className="switch" role="group" aria-label="Along">
      <button type="button" aria-pressed={way === "place"} onClick={() => choose("place")}>
        Trials
      </button>
      <button type="button" aria-pressed={way === "device_seconds"} onClick={() => choose("device_seconds")}>
        Device time
      </button>
    </span>
  );
}

function Legend({ picture }: { picture: SessionPicture }) {
  const { progress, metric } = picture;
  const best = progress.best[progress.best.length - 1];
  const control = progress.control[progress.control.length - 1];
  return (
    <p className="legend small">
      <span className="key best">
        best {metric} {figure(best?.value)} {best && <Link href={trialAddress(best.trial_id)}>{best.trial_id}</Link>}
      </span>
      {control && <span className="key control">control arm {figure(control.value)}</span>}
      {progress.default && <span className="key default">default {figure(progress.default.value)}</span>}
      <span className="quiet">
        {best?.low == null
          ? "no interval yet: nothing was repeated"
          : "band: what is believed of the leader, 95 %; single values flatter"}
      </span>
      <span className="quiet">{duration(progress.device_seconds)} of device time</span>
    </p>
  );
}

function whyNothing(picture: SessionPicture): string {
  const { progress, n_by_state: counts } = picture;
  if (progress.n_failed > 0) return `${progress.n_failed} trials have ended, and none gave a value that counts.`;
  if (counts["launched"]) return "The first trials are running; none has ended yet.";
  if (counts["proposed"]) return "The first trials are proposed and wait for a device.";
  return "No trials yet.";
}
