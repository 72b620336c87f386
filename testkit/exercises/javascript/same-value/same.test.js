import assert from "node:assert/strict";
import { test } from "node:test";

import { same } from "./same.js";

test("plain values", () => {
  assert.equal(same(1, 1), true);
  assert.equal(same("a", "b"), false);
  assert.equal(same(1, "1"), false);
  assert.equal(same(NaN, NaN), true);
  assert.equal(same(0, -0), true);
});

test("null", () => {
  assert.equal(same(null, null), true);
  assert.equal(same(null, {}), false);
  assert.equal(same({}, null), false);
  assert.equal(same(null, undefined), false);
});

test("objects", () => {
  assert.equal(same({ a: 1, b: [2, { c: 3 }] }, { b: [2, { c: 3 }], a: 1 }), true);
  assert.equal(same({ a: 1 }, { a: 1, b: 2 }), false);
  assert.equal(same({ a: 1, b: 2 }, { a: 1 }), false);
  assert.equal(same({ a: undefined }, { b: undefined }), false);
  assert.equal(same({ a: undefined }, {}), false);
});

test("arrays", () => {
  assert.equal(same([1, [2]], [1, [2]]), true);
  assert.equal(same([1, 2], [2, 1]), false);
  assert.equal(same([1, 2], [1, 2, 3]), false);
  assert.equal(same([], {}), false);
  assert.equal(same({ 0: "a" }, ["a"]), false);
});
