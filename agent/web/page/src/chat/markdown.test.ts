import { describe, expect, it } from "vitest";

import { parse, type Inline } from "./markdown";

const text = (words: string): Inline => ({ kind: "text", text: words });

describe("blocks", () => {
  it("parts paragraphs at empty lines", () => {
    expect(parse("a\nb\n\nc")).toEqual([
      { kind: "paragraph", parts: [text("a\nb")] },
      { kind: "paragraph", parts: [text("c")] },
    ]);
  });

  it("leaves HTML as the text that it is", () => {
    const evil = '<img src=x onerror="alert(1)"><script>alert(1)</script>';
    expect(parse(evil)).toEqual([{ kind: "paragraph", parts: [text(evil)] }]);
  });

  it("leads nowhere by a link", () => {
    const link = "[click](javascript:alert(1)) <https://evil.example>";
    expect(parse(link)).toEqual([{ kind: "paragraph", parts: [text(link)] }]);
  });

  it("reads lists within lists", () => {
    expect(parse("- a\n  - b\n- c")).toEqual([
      {
        kind: "list",
        isOrdered: false,
        start: 1,
        items: [
          [
            { kind: "paragraph", parts: [text("a")] },
            { kind: "list", isOrdered: false, start: 1, items: [[{ kind: "paragraph", parts: [text("b")] }]] },
          ],
          [{ kind: "paragraph", parts: [text("c")] }],
        ],
      },
    ]);
  });

  it("keeps the number that a list begins with, and its items over empty lines", () => {
    const [list] = parse("3. a\n\n4. b");
    expect(list).toMatchObject({ kind: "list", isOrdered: true, start: 3 });
    expect(list?.kind === "list" && list.items.length).toBe(2);
  });

  it("shows a table whose rows are too short or too long by its header", () => {
    expect(parse("| a | b |\n|---|--:|\n| 1 |\n| 1 | 2 | 3 |")).toEqual([
      {
        kind: "table",
        header: [[text("a")], [text("b")]],
        rows: [
          [[text("1")], []],
          [[text("1")], [text("2")]],
        ],
      },
    ]);
  });

  it("takes code as it is, even where its end is not written yet", () => {
    expect(parse("```py\n# not a heading\n**x**")).toEqual([
      { kind: "code", text: "# not a heading\n**x**", language: "py" },
    ]);
    expect(parse("```\na\n```\nb")).toEqual([
      { kind: "code", text: "a", language: "" },
      { kind: "paragraph", parts: [text("b")] },
    ]);
  });
});

describe("inline", () => {
  const inline = (line: string) => {
    const [block] = parse(line);
    return block?.kind === "paragraph" ? block.parts : null;
  };

  it("reads bold, emphasis and code", () => {
    expect(inline("**b** *e* `c`")).toEqual([
      { kind: "strong", parts: [text("b")] },
      text(" "),
      { kind: "emphasis", parts: [text("e")] },
      text(" "),
      { kind: "code", text: "c" },
    ]);
  });

  it("leaves products, powers and names with underscores alone", () => {
    for (const line of ["2*3*4", "2**3", "val_loss_ema", "a * b * c"]) expect(inline(line)).toEqual([text(line)]);
  });

  it("marks nothing within code", () => {
    expect(inline("`**x**`")).toEqual([{ kind: "code", text: "**x**" }]);
  });
});

it("ends for any text, however it is nested", () => {
  for (const evil of [">".repeat(2000), "- ".repeat(2000), "*".repeat(5000), "`".repeat(5000), "|".repeat(3000), "**a".repeat(1500)]) {
    expect(() => parse(`${evil}\n${evil}`)).not.toThrow();
  }
});
