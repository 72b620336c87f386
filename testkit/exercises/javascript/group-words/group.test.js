import assert from "node:assert/strict";
import { test } from "node:test";

import { groupBy, largest } from "./group.js";

const byLength = (word) => word.length;

test("groups keep the order of their first item", () => {
  const groups = groupBy(["pear", "fig", "plum", "kiwi", "nut"], byLength);
  assert.deepEqual([...groups], [[4, ["pear", "plum", "kiwi"]], [3, ["fig", "nut"]]]);
});

test("keys keep their type", () => {
  const groups = groupBy([1, "1", 1], (item) => item);
  assert.deepEqual([...groups], [[1, [1, 1]], ["1", ["1"]]]);
});

test("any text can be a key", () => {
  const groups = groupBy(["constructor", "toString"], (word) => word);
  assert.deepEqual([...groups.keys()], ["constructor", "toString"]);
});

test("the largest group", () => {
  assert.equal(largest(groupBy(["a", "bb", "c"], byLength)), 1);
  assert.equal(largest(groupBy(["bb", "a", "cc", "d"], byLength)), 2);
  assert.equal(largest(new Map()), undefined);
});
