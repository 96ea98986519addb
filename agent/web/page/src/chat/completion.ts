/** Completion of slash commands while they are typed. */

export interface Command {
  readonly name: string;
  readonly usage: string;
  readonly summary: string;
}

/** Commands that what is typed may become; none once its name is complete and more was typed. */
export function fitting(typed: string, commands: readonly Command[]): Command[] {
  const found = /^\/([\w-]*)$/.exec(typed);
  if (!found) return [];
  return commands.filter((command) => command.name.startsWith(found[1]!.toLowerCase()));
}

/** What the line becomes when a command is chosen: with a space where it takes words. */
export function completed(command: Command): string {
  return `/${command.name}${/\s/.test(command.usage.trim()) ? " " : ""}`;
}
