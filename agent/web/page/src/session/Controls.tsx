// Pause, stop and resume. Stopping is asked about first.

import { useState } from "react";

import { post, Refusal } from "../api/client";
import type { SessionPicture } from "../api/types";

export function Controls({ picture, done }: { picture: SessionPicture; done(): void }) {
  const [isSure, setSure] = useState(false);
  const [trouble, setTrouble] = useState<string | null>(null);
  const { state, session_id: id } = picture.session;
  const send = async (way: string, body: unknown = {}) => {
    try {
      await post(`/v1/sessions/${encodeURIComponent(id)}/${way}`, body);
      setTrouble(null);
    } catch (error) {
      setTrouble(error instanceof Refusal ? error.message : String(error));
    }
    setSure(false);
    done();
  };
  const say = (kind: string) => send("steer", { words: [{ kind }] });
  return (
    <div className="controls">
      <div className="row">
        {state === "running" && (
          <button type="button" onClick={() => void say(picture.is_paused ? "go_on" : "pause")}>
            {picture.is_paused ? "Go on" : "Pause"}
          </button>
        )}
        {state === "running" && !isSure && (
          <button type="button" onClick={() => setSure(true)}>
            Stop…
          </button>
        )}
        {(state === "stopped" || state === "failed") && (
          <button type="button" onClick={() => void send("resume")}>
            Resume
          </button>
        )}
      </div>
      {isSure && (
        <div className="row confirm" role="alertdialog" aria-label="Stop the session?">
          <span>Queued jobs are asked back, running ones finish.</span>
          <button type="button" className="primary" autoFocus onClick={() => void send("stop")}>
            Stop {id}
          </button>
          <button type="button" onClick={() => setSure(false)}>
            Keep it running
          </button>
        </div>
      )}
      {trouble && (
        <p className="bad small" role="alert">
          {trouble}
        </p>
      )}
    </div>
  );
}
