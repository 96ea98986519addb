// What each parameter does to the value, that which matters most first.

import { Link, trialAddress } from "../app/router";
import type { EffectLine, Point, SessionPicture } from "../api/types";
import { figure } from "../ui/numbers";
import { Panel } from "../ui/parts";
import { Words } from "../ui/Words";
import { Frame } from "./Frame";
import { clipped, linear, logarithmic, robustLimits, type Scale } from "./scale";

type Parameter = SessionPicture["parameters"][string];

export function Effects({ picture }: { picture: SessionPicture }) {
  const points = picture.points.filter((point) => point.value !== null);
  if (points.length === 0) return null;
  const best = picture.progress.best[picture.progress.best.length - 1];
  const limits = robustLimits(
    points.map((point) => point.value ?? 0),
    best ? [best.value] : [],
  );
  return (
    <Panel
      title="Effects of parameters"
      aside={<span className="quiet small">a search is no experiment: these are hints; boxes are quartiles</span>}
    >
      <div className="effects">
        {picture.effects.map((effect) => (
          <EffectPlot
            key={effect.name}
            effect={effect}
            parameter={picture.parameters[effect.name]}
            points={points}
            bestId={best?.trial_id}
            y={linear(...limits, 4)}
            metric={picture.metric}
          />
        ))}
      </div>
    </Panel>
  );
}

interface EffectPlotProps {
  effect: EffectLine;
  parameter: Parameter | undefined;
  points: Point[];
  bestId: string | undefined;
  y: Scale;
  metric: string;
}

function EffectPlot({ effect, parameter, points, bestId, y, metric }: EffectPlotProps) {
  if (!parameter) return null;
  const choices = parameter.type === "categorical" ? [...parameter.choices] : null;
  const placed = points.flatMap((point) => {
    const at = placeOf(point.params[effect.name], choices);
    return at === null ? [] : [{ point, at: choices ? at + spread(point.number) : at }];
  });
  const x = axis(parameter, placed.map((one) => one.at));
  const start = placeOf(parameter.default, choices);
  return (
    <figure className="effect">
      <figcaption>
        <strong>
          <Words text={effect.name} />
        </strong>{" "}
        <span className={effect.p_value !== null && effect.p_value <= 0.05 ? "" : "quiet"}>
          <Words text={effect.words} />
        </span>
        {effect.share !== null && (
          <meter
            min={0}
            max={1}
            value={effect.share}
            title={`explains ${figure(100 * effect.share)} % of the ranks of ${metric}, p ${figure(effect.p_value)}`}
          />
        )}
      </figcaption>
      <Frame title={`${metric} against ${effect.name}: ${effect.words}`} x={x} y={y} height={150}>
        {(places) => (
          <>
            {start !== null && (
              <line className="default-line" x1={places.x(start)} x2={places.x(start)} y1={places.top} y2={places.bottom} />
            )}
            {effect.parts.map((part) => {
              const [low, high] = [placeOf(part.low, choices), placeOf(part.high, choices)];
              if (low === null || high === null) return null;
              const [from, to] = choices ? [places.x(low - 0.3), places.x(high + 0.3)] : [places.x(low), places.x(high)];
              const up = (value: number) => places.bottom - clipped(y, value).at * (places.bottom - places.top);
              const [bottom, top] = [up(part.quartiles[0]), up(part.quartiles[1])];
              const width = Math.max(to - from, 3);
              return (
                <g key={String(part.low)}>
                  <rect className="band" x={from} width={width} y={top} height={Math.max(bottom - top, 1)} />
                  <line className="median" x1={from} x2={from + width} y1={up(part.median)} y2={up(part.median)} />
                </g>
              );
            })}
            {placed.map(({ point, at }) => {
              const place = clipped(y, point.value ?? 0);
              const kind = point.trial_id === bestId ? "best" : point.is_edited ? "edited" : "other";
              return (
                <Link key={point.trial_id} href={trialAddress(point.trial_id)} tabIndex={-1}>
                  <circle
                    className={`mark ${kind}${place.beyond ? " beyond" : ""}`}
                    cx={places.x(at)}
                    cy={places.bottom - place.at * (places.bottom - places.top)}
                    r={kind === "best" ? 4.5 : 2.4}
                  >
                    <title>{`${point.trial_id}: ${effect.name}=${String(point.params[effect.name])}, ${figure(point.value)}`}</title>
                  </circle>
                </Link>
              );
            })}
          </>
        )}
      </Frame>
    </figure>
  );
}

function axis(parameter: Parameter, places: number[]): Scale {
  if (parameter.type === "categorical") {
    const n = parameter.choices.length;
    const scale = linear(-0.6, n - 0.4);
    return { ...scale, ticks: parameter.choices.map((choice, value) => ({ value, label: cut(String(choice)) })) };
  }
  const [low, high] = [Math.min(parameter.low, ...places), Math.max(parameter.high, ...places)];
  if (!parameter.log) {
    const room = 0.03 * (high - low);
    return linear(low - room, high + room, 5);
  }
  const room = (high / low) ** 0.03;
  return logarithmic(low / room, high * room, 4);
}

function placeOf(value: unknown, choices: readonly unknown[] | null): number | null {
  if (choices) {
    const at = choices.findIndex((choice) => choice === value);
    return at < 0 ? null : at;
  }
  return typeof value === "number" ? value : null;
}

/** Equal choices beside each other, by number, so that it is the same at each drawing. */
function spread(number: number): number {
  return (((number * 7) % 11) - 5) * 0.035;
}

function cut(text: string): string {
  return text.length > 12 ? `${text.slice(0, 11)}…` : text;
}
