// The output of one attempt, read from its end: older and newer pieces as they are asked for. No polling.

import { useCallback, useEffect, useRef, useState } from "react";

import { listen } from "../api/activity";
import { get, Refusal } from "../api/client";
import { trialPath, type LogPiece } from "./types";

export interface Source {
  jobId: string;
  attempt: number | null;
  stream: string;
}

export interface Log {
  text: string;
  /** Byte where the text begins; 0: there is nothing older. */
  start: number;
  streams: readonly string[];
  isComplete: boolean;
  refusal: Refusal | null;
  isReading: boolean;
  older(): Promise<void>;
  newer(): Promise<void>;
}

interface Known {
  text: string;
  start: number;
  end: number;
  streams: readonly string[];
  isComplete: boolean;
}

const NOTHING: Known = { text: "", start: 0, end: 0, streams: ["main"], isComplete: false };

/** @param follows whether what the session does is a reason to look for more. */
export function useLog(trialId: string, sessionId: string, source: Source, follows: boolean): Log {
  const [known, setKnown] = useState<Known>(NOTHING);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [isReading, setReading] = useState(false);
  const now = useRef(NOTHING);
  const turn = useRef(0);
  const busy = useRef(false);
  const { jobId, attempt, stream } = source;

  const read = useCallback(
    async (query: { offset?: number; before?: number }, join: (known: Known, piece: LogPiece) => Known) => {
      if (busy.current) return;
      const mine = turn.current;
      busy.current = true;
      setReading(true);
      try {
        const asked = { job_id: jobId, attempt, stream, ...query };
        const piece = await get<LogPiece>(trialPath(trialId, "log", asked));
        if (turn.current !== mine) return;
        now.current = join(now.current, piece);
        setKnown(now.current);
        setRefusal(null);
      } catch (error) {
        if (turn.current === mine && error instanceof Refusal) setRefusal(error);
      } finally {
        if (turn.current === mine) {
          busy.current = false;
          setReading(false);
        }
      }
    },
    [trialId, jobId, attempt, stream],
  );

  const tail = useCallback(() => read({}, (_, piece) => joined(piece.text, piece.start, piece.end, piece)), [read]);
  const older = useCallback(async () => {
    const { start, text, end, isComplete } = now.current;
    if (start <= 0) return;
    await read({ before: start }, (_, piece) => ({
      ...joined(piece.text + text, piece.start, end, piece),
      isComplete,
    }));
  }, [read]);
  const newer = useCallback(async () => {
    const { start, text, end, isComplete } = now.current;
    if (isComplete) return;
    await read({ offset: end }, (_, piece) => joined(text + piece.text, start, piece.end, piece));
  }, [read]);

  useEffect(() => {
    turn.current += 1;
    busy.current = false;
    now.current = NOTHING;
    setKnown(NOTHING);
    void tail();
  }, [tail]);

  useEffect(() => {
    if (!follows) return;
    return listen((heard) => {
      if (heard === "connected" || heard.sessionId === sessionId) void newer();
    });
  }, [follows, newer, sessionId]);

  return { ...known, refusal, isReading, older, newer };
}

function joined(text: string, start: number, end: number, piece: LogPiece): Known {
  return { text, start, end, streams: piece.streams, isComplete: piece.is_complete };
}
