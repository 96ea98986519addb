// Where one writes: Enter sends, Shift+Enter begins a line, `/` offers the commands.

import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";

import { Refusal } from "../api/client";
import type { SlashView } from "../api/types";
import { useResource } from "../api/useResource";
import { Words } from "../ui/Words";
import { completed, fitting, type Command } from "./completion";

const MOST_CHARACTERS = 20_000;

interface Props {
  text: string;
  onText(text: string): void;
  /** The promise ends when it is said; what it throws is shown, and the text stays. */
  say(text: string, key: string): Promise<void>;
  stop: (() => void) | null;
  /** Why nothing can be said now; null: one can. */
  closed: string | null;
  hasModel: boolean;
  /** What was said last, for the arrow up. */
  last: string;
  /** Nothing was said yet: one begins to write at once. */
  isFirst: boolean;
}

export function Composer({ text, onText, say, stop, closed, hasModel, last, isFirst }: Props) {
  const commands = useResource<readonly SlashView[]>("/v1/slash", null).data ?? [];
  const [chosen, setChosen] = useState(0);
  const [isHidden, setHidden] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [isSending, setSending] = useState(false);
  const attempt = useRef<{ text: string; key: string } | null>(null);
  const list = useId();
  const offered = isHidden ? [] : fitting(text, commands);
  const at = Math.min(chosen, offered.length - 1);

  const write = (next: string) => {
    onText(next);
    setChosen(0);
    setHidden(false);
  };
  const send = (line: string) => {
    const said = line.trim();
    if (!said || closed !== null || isSending) return;
    if (attempt.current?.text !== said) attempt.current = { text: said, key: crypto.randomUUID() };
    setSending(true);
    setRefusal(null);
    say(said, attempt.current.key)
      .then(() => {
        attempt.current = null;
        write("");
      })
      .catch((error: unknown) => {
        if (!(error instanceof Refusal)) throw error;
        setRefusal(error);
      })
      .finally(() => setSending(false));
  };
  const hear = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.nativeEvent.isComposing) return;
    const command = offered[at];
    if (command && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      const step = event.key === "ArrowDown" ? 1 : offered.length - 1;
      setChosen((at + step) % offered.length);
    } else if (command && event.key === "Tab" && !event.shiftKey) {
      write(completed(command));
    } else if (event.key === "Escape") {
      if (command) setHidden(true);
      else event.currentTarget.blur();
    } else if (event.key === "Enter" && !event.shiftKey) {
      const line = command ? completed(command) : text;
      if (line.endsWith(" ") && command && text !== `/${command.name}`) write(line);
      else send(line);
    } else if (event.key === "ArrowUp" && text === "" && last) {
      write(last);
    } else {
      return;
    }
    event.preventDefault();
  };

  return (
    <div className="composer">
      {offered.length > 0 && <Offer id={list} offered={offered} at={at} choose={(one) => write(completed(one))} />}
      {refusal && (
        <p className="bad" role="alert">
          {refusal.message}
        </p>
      )}
      <div className="write">
        <textarea
          data-chat-input
          autoFocus={isFirst}
          aria-label="Say something, or / for commands"
          aria-autocomplete="list"
          aria-controls={offered.length > 0 ? list : undefined}
          aria-activedescendant={offered.length > 0 ? `${list}-${at}` : undefined}
          rows={1}
          maxLength={MOST_CHARACTERS}
          value={text}
          placeholder={hasModel ? "Ask, or / for commands" : "/ for commands; no model is set up"}
          onChange={(event) => write(event.target.value)}
          onKeyDown={hear}
        />
        {stop ? (
          <button type="button" onClick={stop}>
            Stop
          </button>
        ) : (
          <button
            type="button"
            className="primary"
            disabled={!text.trim() || closed !== null || isSending}
            onClick={() => send(text)}
          >
            Send
          </button>
        )}
      </div>
      {closed && <p className="quiet hint">{closed}</p>}
    </div>
  );
}

interface OfferProps {
  id: string;
  offered: readonly Command[];
  at: number;
  choose(command: Command): void;
}

function Offer({ id, offered, at, choose }: OfferProps) {
  const current = useRef<HTMLLIElement>(null);
  useEffect(() => {
    void current.current?.scrollIntoView({ block: "nearest" });
  }, [at]);
  return (
    <ul className="offer" role="listbox" id={id} aria-label="Commands">
      {offered.map((one, i) => (
        <li
          key={one.usage}
          id={`${id}-${i}`}
          ref={i === at ? current : undefined}
          role="option"
          aria-selected={i === at}
          onMouseDown={(event) => {
            event.preventDefault();
            choose(one);
          }}
        >
          <code>
            <Words text={one.usage} />
          </code>
          <span className="quiet">
            <Words text={one.summary} />
          </span>
        </li>
      ))}
    </ul>
  );
}
