import assert from "node:assert/strict";
import { test } from "node:test";

import { parseLine } from "./csv.js";

test("plain fields", () => {
  assert.deepEqual(parseLine("a,b,c"), ["a", "b", "c"]);
  assert.deepEqual(parseLine(" a , b"), [" a ", " b"]);
});

test("empty fields", () => {
  assert.deepEqual(parseLine(""), [""]);
  assert.deepEqual(parseLine(",a,"), ["", "a", ""]);
  assert.deepEqual(parseLine('"",""'), ["", ""]);
});

test("quoted fields", () => {
  assert.deepEqual(parseLine('"a,b",c'), ["a,b", "c"]);
  assert.deepEqual(parseLine('x,"say ""hi"""'), ["x", 'say "hi"']);
  assert.deepEqual(parseLine('"""",1'), ['"', "1"]);
});

test("faulty lines", () => {
  for (const line of ['"a', '"a"b,c', 'a"b', '"a" ,b', 'x,"']) {
    assert.throws(() => parseLine(line), SyntaxError, line);
  }
});
