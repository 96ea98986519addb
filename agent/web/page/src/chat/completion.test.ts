import { expect, it } from "vitest";

import { completed, fitting } from "./completion";

const commands = [
  { name: "best", usage: "/best", summary: "" },
  { name: "explain", usage: "/explain JOB", summary: "" },
  { name: "jobs", usage: "/jobs [STATE]", summary: "" },
];
const names = (typed: string) => fitting(typed, commands).map((one) => one.name);

it("offers what may still come of it", () => {
  expect(names("/")).toEqual(["best", "explain", "jobs"]);
  expect(names("/E")).toEqual(["explain"]);
  expect(names("/x")).toEqual([]);
});

it("offers nothing where the name is done, or where it is no command", () => {
  for (const typed of ["/explain j1", "", "a /b", "/best\n"]) expect(names(typed)).toEqual([]);
});

it("leaves room for words where a command takes some", () => {
  expect(commands.map(completed)).toEqual(["/best", "/explain ", "/jobs "]);
});
