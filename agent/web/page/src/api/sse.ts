// Server-sent events out of a body that comes in pieces. By fetch, since EventSource can not send a token.

export interface ServerEvent {
  id: string | null;
  kind: string;
  data: string;
}

/** Feed it text as it comes; it gives the events that are complete. Source: HTML standard, section 9.2.6. */
export class EventReader {
  private rest = "";
  private id: string | null = null;
  private kind = "";
  private data: string[] = [];

  feed(text: string): ServerEvent[] {
    const found: ServerEvent[] = [];
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      const done = this.line(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (done) found.push(done);
    }
    return found;
  }

  private line(line: string): ServerEvent | null {
    if (line === "") {
      const isEmpty = this.data.length === 0;
      const event = { id: this.id, kind: this.kind || "message", data: this.data.join("\n") };
      this.kind = "";
      this.data = [];
      this.id = null;
      return isEmpty ? null : event;
    }
    if (line.startsWith(":")) return null;
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.data.push(value);
    else if (name === "event") this.kind = value;
    else if (name === "id") this.id = value;
    return null;
  }
}
