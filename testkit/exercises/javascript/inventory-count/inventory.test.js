import assert from "node:assert/strict";
import { test } from "node:test";

import { Inventory } from "./inventory.js";

test("pieces are counted", () => {
  const inventory = new Inventory();
  inventory.add("nail", 10);
  inventory.add("nail", 5);
  inventory.add("hammer");
  assert.deepEqual(inventory.list(), [["hammer", 1], ["nail", 15]]);
});

test("inventories are separate", () => {
  const one = new Inventory();
  const other = new Inventory();
  one.add("nail", 2);
  assert.deepEqual(other.list(), []);
});

test("pieces are removed", () => {
  const inventory = new Inventory();
  inventory.add("nail", 3);
  inventory.remove("nail");
  assert.deepEqual(inventory.list(), [["nail", 2]]);
  inventory.remove("nail", 2);
  assert.deepEqual(inventory.list(), []);
});

test("more than there are cannot be removed", () => {
  const inventory = new Inventory();
  inventory.add("nail", 3);
  assert.throws(() => inventory.remove("nail", 4), Error);
  assert.throws(() => inventory.remove("saw"), Error);
  assert.deepEqual(inventory.list(), [["nail", 3]]);
});
