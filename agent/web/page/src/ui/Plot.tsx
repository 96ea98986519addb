// A plot by uPlot, loaded when one is shown first. It redraws for new data, another size, another theme.

import { useEffect, useRef } from "react";
import type uPlot from "uplot";

export interface PlotLine {
  name: string;
  /** As many as `x`; null is a gap, undefined is no point at all: the line goes on over it. */
  y: (number | null | undefined)[];
  /** Number of its color, from 1; else by its place. */
  color?: number;
  dashed?: boolean;
  pointsOnly?: boolean;
}

export interface PlotProps {
  x: number[];
  lines: PlotLine[];
  xLabel: string;
  yLabel: string;
  /** Read out instead of the picture. */
  title: string;
  logY?: boolean;
  height?: number;
  /** Areas between two lines, by their names. */
  bands?: { upper: string; lower: string }[];
  /** Vertical marks at these x, as the borders of attempts. */
  marks?: { x: number; label: string }[];
}

export function Plot(props: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const { x, lines, logY, height = 220 } = props;
  useEffect(() => {
    const target = place.current;
    if (!target) return;
    let plot: uPlot | null = null;
    let isGone = false;
    const draw = async () => {
      const [{ default: Drawn }] = await Promise.all([import("uplot"), import("uplot/dist/uPlot.min.css")]);
      if (isGone) return;
      plot?.destroy();
      plot = new Drawn(options(props, target, height), [x, ...lines.map((line) => line.y)], target);
    };
    void draw();
    const size = new ResizeObserver(() => plot?.setSize({ width: target.clientWidth, height }));
    size.observe(target);
    const redraw = () => void draw();
    window.addEventListener("nightlab-theme", redraw);
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", redraw);
    return () => {
      isGone = true;
      size.disconnect();
      window.removeEventListener("nightlab-theme", redraw);
      system.removeEventListener("change", redraw);
      plot?.destroy();
    };
  });
  return (
    <figure className="plot">
      <div ref={place} role="img" aria-label={props.title} />
      <figcaption className="quiet">
        {props.xLabel} / {props.yLabel}
        {logY ? " (log)" : ""}
      </figcaption>
    </figure>
  );
}

function options(props: PlotProps, target: HTMLElement, height: number): uPlot.Options {
  const style = getComputedStyle(target);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
  const names = props.lines.map((line) => line.name);
  return {
    width: target.clientWidth || 400,
    height,
    scales: { x: { time: false }, y: { distr: props.logY ? 3 : 1 } },
    axes: [axis, { ...axis, size: 60 }],
    series: [
      { label: props.xLabel },
      ...props.lines.map((line, index) => ({
        label: line.name,
        stroke: color(`--series-${((line.color ?? index + 1) - 1) % 6 + 1}`),
        width: line.pointsOnly ? 0 : 1.6,
        ...(line.dashed ? { dash: [5, 4] } : {}),
        points: { show: line.pointsOnly === true || line.y.length < 40, size: 4 },
      })),
    ],
    bands: (props.bands ?? []).map((band) => ({
      series: [names.indexOf(band.upper) + 1, names.indexOf(band.lower) + 1] as [number, number],
      fill: color("--band"),
    })),
    hooks: { draw: [(plot: uPlot) => drawMarks(plot, props.marks ?? [], color("--quiet"))] },
    legend: { live: true },
    cursor: { points: { size: 6 } },
  };
}

function drawMarks(plot: uPlot, marks: { x: number; label: string }[], stroke: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.fillStyle = stroke;
  ctx.setLineDash([3, 3]);
  ctx.textAlign = "left";
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  for (const mark of marks) {
    const at = plot.valToPos(mark.x, "x", true);
    if (at < bbox.left || at > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(mark.label, at + 4 * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
  }
  ctx.restore();
}
