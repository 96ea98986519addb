// Short names for what the API sends; `wire.ts` is made from its OpenAPI document by `npm run types`.

import type { components } from "./wire";

type Schemas = components["schemas"];

export type Activity = Schemas["Event"];
export type SessionSummary = Schemas["SessionSummary"];
export type SessionDetail = Schemas["SessionDetail"];
export type Hypothesis = Schemas["Hypothesis"];
export type TrialView = Schemas["TrialView"];
export type GateView = Schemas["GateView"];
export type GateDiff = Schemas["GateDiff"];
export type ChatView = Schemas["ChatView"];
export type Entry = Schemas["Entry"];
export type SlashView = Schemas["SlashView"];
export type SessionPicture = Schemas["SessionPicture"];
export type Claim = Schemas["Claim"];
export type Idea = Schemas["Idea"];
export type Progress = Schemas["Progress"];
export type Point = Schemas["Point"];
export type Best = Schemas["Record"];
export type EffectLine = Schemas["EffectLine"];
export type TrialTable = Schemas["TrialTable"];
export type TrialLine = Schemas["TrialLine"];
