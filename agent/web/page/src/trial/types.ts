import type { components } from "../api/wire";

type Schemas = components["schemas"];

export type TrialDetail = Schemas["TrialDetail"];
export type Job = Schemas["JobPart"];
export type Attempt = Schemas["AttemptView"];
export type Curves = Schemas["Curves"];
export type Curve = Schemas["Curve"];
export type CodeChange = Schemas["CodeChange"];
export type LogPiece = Schemas["LogPiece"];
export type LogErrors = Schemas["LogErrors"];
export type ArtifactFolder = Schemas["ArtifactFolder"];

export const trialPath = (trialId: string, what: string, query: Record<string, string | number | null> = {}): string => {
  const given = Object.entries(query).filter((pair): pair is [string, string | number] => pair[1] !== null);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `/v1/trials/${encodeURIComponent(trialId)}/${what}${text ? `?${text}` : ""}`;
};
