import assert from "node:assert/strict";
import { test } from "node:test";

import { change } from "./change.js";

test("a single coin", () => {
  assert.deepEqual(change(25, [1, 5, 10, 25]), [25]);
});

test("several coins in ascending order", () => {
  assert.deepEqual(change(15, [1, 5, 10, 25]), [5, 10]);
  assert.deepEqual(change(23, [10, 1, 5]), [1, 1, 1, 10, 10]);
});

test("the largest coin is not always right", () => {
  assert.deepEqual(change(6, [1, 3, 4]), [3, 3]);
  assert.deepEqual(change(63, [1, 5, 10, 21, 25]), [21, 21, 21]);
});

test("of equally short lists the one with the largest coin", () => {
  assert.deepEqual(change(10, [3, 5, 7]), [3, 7]);
});

test("without small coins", () => {
  assert.deepEqual(change(21, [2, 5, 10]), [2, 2, 2, 5, 10]);
});

test("nothing to pay", () => {
  assert.deepEqual(change(0, [1, 5]), []);
});

test("impossible amounts", () => {
  assert.throws(() => change(3, [5, 10]), RangeError);
  assert.throws(() => change(11, [4, 6]), RangeError);
  assert.throws(() => change(-5, [1]), RangeError);
});
