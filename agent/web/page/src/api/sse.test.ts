import { expect, it } from "vitest";

import { EventReader, type ServerEvent } from "./sse";

const SENT = ': connected\n\nid: 7\nevent: entry\ndata: {"a":\ndata: 1}\n\n: still here\n\nevent: text\r\ndata: x\r\n\r\n';
const CAME: ServerEvent[] = [
  { id: "7", kind: "entry", data: '{"a":\n1}' },
  { id: null, kind: "text", data: "x" },
];

it("reads the same wherever the bytes are cut", () => {
  for (let at = 0; at <= SENT.length; at += 1) {
    const reader = new EventReader();
    expect([...reader.feed(SENT.slice(0, at)), ...reader.feed(SENT.slice(at))]).toEqual(CAME);
  }
});

it("gives nothing of an event that broke off", () => {
  expect(new EventReader().feed("id: 1\nevent: entry\ndata: half")).toEqual([]);
});
