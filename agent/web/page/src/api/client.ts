// Asking the API: every answer is an envelope, every refusal a `Refusal` whose message says what to do.

import { token } from "./token";

export class Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }

  /** The page has no token, or one of another service. */
  get isUnknown(): boolean {
    return this.status === 401;
  }
}

interface Envelope<T> {
  data: T | null;
  error: { code: string; message: string } | null;
}

export function headers(): Record<string, string> {
  const known = token();
  return known === null ? {} : { Authorization: `Bearer ${known}` };
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return answered<T>(await reached(path, { headers: headers(), ...(signal ? { signal } : {}) }));
}

export async function post<T>(path: string, body: unknown = {}): Promise<T> {
  const sent = { ...headers(), "Content-Type": "application/json" };
  return answered<T>(await reached(path, { method: "POST", headers: sent, body: JSON.stringify(body) }));
}

/** A refusal of any kind as one; to be thrown by whoever reads an answer by itself. */
export async function refusalOf(response: Response): Promise<Refusal> {
  try {
    const said = (await response.json()) as Envelope<unknown>;
    if (said.error) return new Refusal(response.status, said.error.code, said.error.message);
  } catch {
    // It is no envelope: something else answers at this address.
  }
  return new Refusal(response.status, "no_answer", `The agent service answered ${response.status}, without a reason.`);
}

async function reached(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, { ...init, cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refusal(0, "unreachable", "The agent service does not answer. `nightlab up` starts it.");
  }
}

async function answered<T>(response: Response): Promise<T> {
  if (!response.ok) throw await refusalOf(response);
  const said = (await response.json()) as Envelope<T>;
  return said.data as T;
}
