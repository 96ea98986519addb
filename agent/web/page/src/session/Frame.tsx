// Axes around a drawing, as wide as there is room for.

import { useEffect, useRef, useState, type ReactNode } from "react";

import type { Scale } from "./scale";

export interface Places {
  /** Pixels. */
  x(value: number): number;
  y(value: number): number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

interface FrameProps {
  /** Read out instead of the picture. */
  title: string;
  x: Scale;
  y: Scale;
  height: number;
  xLabel?: string;
  /** Room beyond the axis for what stands at its end. */
  roomRight?: number;
  /** No labels of y: they stand beside the neighbor. */
  isBare?: boolean;
  children(places: Places): ReactNode;
}

const LEFT = 52;
const BARE_LEFT = 8;
const BOTTOM = 22;
const LABEL = 16;

export function Frame({ title, x, y, height, xLabel, roomRight = 10, isBare = false, children }: FrameProps) {
  const [box, width] = useWidth();
  const left = isBare ? BARE_LEFT : LEFT;
  const right = Math.max(width - roomRight, left + 10);
  const top = 8;
  const bottom = height - BOTTOM - (xLabel ? LABEL : 0);
  const places: Places = {
    x: (value) => left + x.at(value) * (right - left),
    y: (value) => bottom - y.at(value) * (bottom - top),
    left,
    right,
    top,
    bottom,
  };
  return (
    <div ref={box} className="drawing">
      {width > 0 && (
        <svg width={width} height={height} role="img" aria-label={title}>
          {y.ticks.map((tick) => (
            <g key={tick.value}>
              <line className="rule" x1={left} x2={right} y1={places.y(tick.value)} y2={places.y(tick.value)} />
              {!isBare && (
                <text className="tick" x={left - 6} y={places.y(tick.value) + 4} textAnchor="end">
                  {tick.label}
                </text>
              )}
            </g>
          ))}
          {x.ticks.map((tick) => (
            <text key={tick.value} className="tick" x={places.x(tick.value)} y={bottom + 15} textAnchor="middle">
              {tick.label}
            </text>
          ))}
          <line className="axis" x1={left} x2={right} y1={bottom} y2={bottom} />
          {xLabel && (
            <text className="tick" x={(left + right) / 2} y={height - 4} textAnchor="middle">
              {xLabel}
            </text>
          )}
          {children(places)}
        </svg>
      )}
    </div>
  );
}

function useWidth(): [React.RefObject<HTMLDivElement | null>, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const target = box.current;
    if (!target) return;
    const size = new ResizeObserver(() => setWidth(target.clientWidth));
    setWidth(target.clientWidth);
    size.observe(target);
    return () => size.disconnect();
  }, []);
  return [box, width];
}
