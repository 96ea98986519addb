import { memo, useMemo, useState } from "react";

import { navigate, useAddress, withQuery } from "../app/router";
import { useResource } from "../api/useResource";
import { inert } from "../ui/inert";
import { Panel } from "../ui/parts";
import { Plot } from "../ui/Plot";
import { Words } from "../ui/Words";
import { drawn, type Look } from "./series";
import { trialPath, type Curve, type Curves, type TrialDetail } from "./types";

const SMOOTHING = [
  { weight: 0, words: "off" },
  { weight: 0.6, words: "light" },
  { weight: 0.9, words: "strong" },
];

export function CurvesPanel({ detail }: { detail: TrialDetail }) {
  const { query } = useAddress();
  const [look, setLook] = useState<Look>({ isLog: false, smoothing: 0 });
  const { trial_id: id, session_id: session } = detail.trial;
  const wanted = query.get("metric");
  const { data, refusal, reload } = useResource<Curves>(trialPath(id, "curves", { key: wanted }), session);
  const curve = data?.curves[0];
  const shown = curve?.key ?? wanted ?? "";
  return (
    <Panel
      title="Curves"
      aside={
        <span className="row tools">
          <label>
            Metric{" "}
            <select value={shown} onChange={(event) => navigate(withQuery("metric", event.target.value), { replace: true })}>
              {options(data, shown).map((key) => (
                <option key={key} value={key}>
                  {inert(key)}
                </option>
              ))}
            </select>
          </label>
          <label>
            <input
              type="checkbox"
              checked={look.isLog}
              onChange={(event) => setLook({ ...look, isLog: event.target.checked })}
            />{" "}
            log
          </label>
          <label>
            Smoothing{" "}
            <select
              value={look.smoothing}
              onChange={(event) => setLook({ ...look, smoothing: Number(event.target.value) })}
            >
              {SMOOTHING.map(({ weight, words }) => (
                <option key={weight} value={weight}>
                  {words}
                </option>
              ))}
            </select>
          </label>
          <button type="button" className="plain" onClick={reload}>
            Read again
          </button>
        </span>
      }
    >
      {refusal && <p className="problem">{refusal.message}</p>}
      {curve && curve.n_points > 0 ? (
        <CurvePlot curve={curve} look={look} />
      ) : (
        data && <p className="quiet">{data.keys.length ? "Nothing is logged under this name." : "Nothing is logged yet."}</p>
      )}
    </Panel>
  );
}

function options(data: Curves | null, shown: string): string[] {
  const keys = data ? [...data.keys] : [];
  return keys.includes(shown) || shown === "" ? keys : [shown, ...keys];
}

const CurvePlot = memo(function CurvePlot({ curve, look }: { curve: Curve; look: Look }) {
  const picture = useMemo(() => drawn(curve, look), [curve, look]);
  const key = inert(curve.key);
  return (
    <>
      <Plot
        x={picture.x}
        lines={picture.lines}
        marks={picture.marks}
        xLabel={curve.x}
        yLabel={key}
        title={`${key} by ${curve.x}, ${curve.pieces.length} attempts`}
        logY={look.isLog}
        height={260}
      />
      <p className="quiet small">
        {curve.n_points} values
        {look.smoothing > 0 && ", smoothed"}
        {curve.x === "point" && ", logged without steps"}
        {picture.nHidden > 0 && `, ${picture.nHidden} not above 0 and not on this axis`}
        {curve.first_not_finite && (
          <>
            ,{" "}
            <strong className="problem">
              {curve.n_not_finite} no number, the first <Words text={curve.first_not_finite} />
            </strong>
          </>
        )}
      </p>
    </>
  );
});
