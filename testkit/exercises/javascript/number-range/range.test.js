import assert from "node:assert/strict";
import { test } from "node:test";

import { range, sumOf } from "./range.js";

test("start and end", () => {
  assert.deepEqual(range(2, 5), [2, 3, 4]);
  assert.deepEqual(range(3, 3), []);
  assert.deepEqual(range(3), [0, 1, 2]);
});

test("steps", () => {
  assert.deepEqual(range(0, 10, 3), [0, 3, 6, 9]);
  assert.deepEqual(range(0, 9, 3), [0, 3, 6]);
  assert.deepEqual(range(5, 0, -2), [5, 3, 1]);
});

test("counting down by default", () => {
  assert.deepEqual(range(3, 0), [3, 2, 1]);
  assert.deepEqual(range(-2), [0, -1]);
});

test("faulty steps", () => {
  assert.throws(() => range(0, 5, 0), RangeError);
  assert.throws(() => sumOf(0, 5, 0), RangeError);
  assert.deepEqual(range(0, 5, -1), []);
  assert.deepEqual(range(5, 0, 1), []);
});

test("sums", () => {
  assert.equal(sumOf(2, 5), 9);
  assert.equal(sumOf(5), 10);
  assert.equal(sumOf(5, 0, -2), 9);
  assert.equal(sumOf(3, 0), 6);
  assert.equal(sumOf(0, 5, -1), 0);
});

test("sums of very long ranges", () => {
  assert.equal(sumOf(0, 1e12, 1e9), 499500000000000);
  assert.equal(sumOf(1, 1000001), 500000500000);
  assert.ok(sumOf(0, 1e12) > 4.9e23);
});
