// Text of others made harmless to look at: no terminal codes, no characters that turn or hide what stands beside them.

const ANSI = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
// Controls but newline and tab; bidirectional marks and overrides; zero-width and other invisible characters.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export function inert(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(ANSI, "").replace(UNSEEN, "\ufffd");
}
