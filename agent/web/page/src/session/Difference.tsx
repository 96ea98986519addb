// Best minus default of one claim: each pair, and the interval, around zero. All claims share one scale.

import type { Claim } from "../api/types";
import { figure } from "../ui/numbers";

const WIDTH = 170;
const HEIGHT = 22;

export function reachOf(claims: readonly Claim[]): number {
  const largest = Math.max(0, ...claims.flatMap((one) => one.pairs.map((pair) => Math.abs(pair.first_value - pair.second_value))));
  const ends = claims.flatMap((one) => (one.difference ? [Math.abs(one.difference.low), Math.abs(one.difference.high)] : []));
  // An interval of few pairs may be very wide: it is cut, so that the others can still be told apart.
  return 1.1 * Math.max(largest, ...ends.map((end) => Math.min(end, 2 * largest))) || 1;
}

export function Difference({ claim, reach, direction }: { claim: Claim; reach: number; direction: string }) {
  if (claim.pairs.length === 0) return <span className="difference" />;
  const at = (value: number) => WIDTH / 2 + (Math.min(Math.max(value / reach, -1), 1) * WIDTH) / 2;
  const interval = claim.difference;
  const better = direction === "maximize" ? "right of zero is better" : "left of zero is better";
  const words = interval
    ? `best minus default ${figure(interval.estimate)} [${figure(interval.low)}, ${figure(interval.high)}]; ${better}`
    : `differences of ${claim.pairs.length} pairs; ${better}`;
  return (
    <svg className="difference" width={WIDTH} height={HEIGHT} role="img" aria-label={words}>
      <title>{words}</title>
      <line className="zero" x1={WIDTH / 2} x2={WIDTH / 2} y1={1} y2={HEIGHT - 1} />
      {interval && <line className="interval" x1={at(interval.low)} x2={at(interval.high)} y1={HEIGHT / 2} y2={HEIGHT / 2} />}
      {claim.pairs.map((pair) => (
        <circle key={pair.seed} className="pair" cx={at(pair.first_value - pair.second_value)} cy={HEIGHT / 2} r={2.2} />
      ))}
      {interval && <circle className="estimate" cx={at(interval.estimate)} cy={HEIGHT / 2} r={4} />}
    </svg>
  );
}
