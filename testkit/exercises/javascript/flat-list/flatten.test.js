import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { depthOf, flatten } from "./flatten.js";

test("all levels", () => {
  assert.deepEqual(flatten([1, [2, [3, [4]], 5]]), [1, 2, 3, 4, 5]);
  assert.deepEqual(flatten([]), []);
  assert.deepEqual(flatten([[], [[]]]), []);
});

test("some levels", () => {
  assert.deepEqual(flatten([1, [2, [3, [4]]]], 1), [1, 2, [3, [4]]]);
  assert.deepEqual(flatten([1, [2, [3, [4]]]], 2), [1, 2, 3, [4]]);
  assert.deepEqual(flatten([1, [2]], 0), [1, [2]]);
});

test("missing values are left out", () => {
  assert.deepEqual(flatten([null, [undefined, 0, [false, null]], ""]), [0, false, ""]);
  assert.deepEqual(flatten([null, [1, [null]]], 1), [1, [null]]);
});

test("the argument is not changed", () => {
  const list = [[1], [2, [3]]];
  flatten(list);
  assert.deepEqual(list, [[1], [2, [3]]]);
});

test("depth", () => {
  assert.equal(depthOf([]), 1);
  assert.equal(depthOf([1]), 1);
  assert.equal(depthOf([[1], 2]), 2);
  assert.equal(depthOf([1, [[], [2, [3]]]]), 4);
});

test("the built-in function is not used", () => {
  assert.doesNotMatch(readFileSync("flatten.js", "utf8"), /\.flat\(|\.flatMap\(/);
});
