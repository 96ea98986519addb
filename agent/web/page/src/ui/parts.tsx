import type { ReactNode } from "react";

/** A state in one word; the kind gives the color: running, finished, failed, supported, refuted... */
export function Chip({ kind, children }: { kind: string; children: ReactNode }) {
  return <span className={`chip ${TONES[kind] ?? "neutral"}`}>{children}</span>;
}

const TONES: Record<string, string> = {
  running: "good",
  working: "good",
  finished: "calm",
  measured: "calm",
  succeeded: "calm",
  supported: "good",
  approved: "good",
  failed: "bad",
  refuted: "bad",
  invalid: "bad",
  denied: "bad",
  stopping: "warn",
  stopped: "warn",
  asking: "warn",
  queued: "warn",
  preempting: "warn",
  waiting: "warn",
};

export function Notice({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="notice" role="alert">
      <h1>{title}</h1>
      {children}
    </section>
  );
}

export function Panel({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section className="panel" aria-label={title}>
      <header className="row">
        <h2>{title}</h2>
        <span className="spacer" />
        {aside}
      </header>
      {children}
    </section>
  );
}

/** A moment, in the reader's own time zone. */
export function Time({ at }: { at: number }) {
  const date = new Date(at * 1000);
  return (
    <time dateTime={date.toISOString()} title={date.toISOString()}>
      {date.toLocaleString(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" })}
    </time>
  );
}
