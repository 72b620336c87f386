import assert from "node:assert/strict";
import { test } from "node:test";

import { pageOf } from "./pages.js";

const letters = ["a", "b", "c", "d", "e"];

test("the first page", () => {
  assert.deepEqual(pageOf(letters, 1, 2), { items: ["a", "b"], page: 1, pages: 3 });
});

test("the next page continues", () => {
  assert.deepEqual(pageOf(letters, 2, 2), { items: ["c", "d"], page: 2, pages: 3 });
});

test("the last page may be short", () => {
  assert.deepEqual(pageOf(letters, 3, 2), { items: ["e"], page: 3, pages: 3 });
});

test("a full last page is the last", () => {
  assert.deepEqual(pageOf(["a", "b"], 1, 2), { items: ["a", "b"], page: 1, pages: 1 });
});

test("an empty list has one page", () => {
  assert.deepEqual(pageOf([], 1, 10), { items: [], page: 1, pages: 1 });
});

test("pages outside the range", () => {
  assert.deepEqual(pageOf(letters, 0, 2), { items: ["a", "b"], page: 1, pages: 3 });
  assert.deepEqual(pageOf(letters, 9, 2), { items: ["e"], page: 3, pages: 3 });
});
