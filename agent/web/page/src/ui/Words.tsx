import { inert } from "./inert";

/** Text that people, models, jobs or files wrote: shown as it is, and never as anything but text. */
export function Words({ text, className }: { text: string; className?: string }) {
  return <bdi className={className}>{inert(text)}</bdi>;
}
