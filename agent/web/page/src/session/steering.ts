// From what is typed to words for a session. Pure.

import type { SessionPicture } from "../api/types";

type Parameters = SessionPicture["parameters"];
export type ParamValue = string | number | boolean;

/** `lr=0.3 hidden=64` as values of the space; what is wrong with it, as a sentence. */
export function readParams(text: string, parameters: Parameters): Record<string, ParamValue> | string {
  const found: Record<string, ParamValue> = {};
  for (const word of text.split(/[\s,]+/).filter(Boolean)) {
    const [name = "", value = ""] = split(word);
    const parameter = parameters[name];
    if (!parameter) return `${name} is no parameter; there are: ${Object.keys(parameters).join(", ")}`;
    if (parameter.type === "categorical") {
      const choice = parameter.choices.find((one) => String(one) === value);
      if (choice === undefined) return `${name} is one of: ${parameter.choices.join(", ")}`;
      found[name] = choice;
      continue;
    }
    const number = Number(value);
    if (value === "" || !Number.isFinite(number)) return `${name} is a number, not ${JSON.stringify(value)}`;
    found[name] = number;
  }
  return found;
}

function split(word: string): [string, string] {
  const at = word.indexOf("=");
  return at < 0 ? [word, ""] : [word.slice(0, at), word.slice(at + 1)];
}
