import assert from "node:assert/strict";
import { test } from "node:test";

import { sortNames } from "./names.js";

test("the last name decides", () => {
  assert.deepEqual(sortNames(["Ada Lovelace", "Zoe Adams", "Bob Miller"]), ["Zoe Adams", "Ada Lovelace", "Bob Miller"]);
});

test("then the rest of the name", () => {
  assert.deepEqual(sortNames(["Mary Ann Lee", "Bruce Lee", "Mary Lee"]), ["Bruce Lee", "Mary Lee", "Mary Ann Lee"]);
});

test("case does not matter", () => {
  assert.deepEqual(sortNames(["ada zuse", "Bob Young", "carl adams"]), ["carl adams", "Bob Young", "ada zuse"]);
});

test("a single word is a last name", () => {
  assert.deepEqual(sortNames(["Ann Zander", "Plato", "Aristotle"]), ["Aristotle", "Plato", "Ann Zander"]);
});

test("the argument is not changed", () => {
  const names = ["B B", "A A"];
  assert.deepEqual(sortNames(names), ["A A", "B B"]);
  assert.deepEqual(names, ["B B", "A A"]);
});
