import assert from "node:assert/strict";
import { test } from "node:test";

import { Bus } from "./bus.js";

test("listeners get all values", () => {
  const bus = new Bus();
  const calls = [];
  bus.on("a", (...values) => calls.push(values));
  assert.equal(bus.emit("a", 1, 2), 1);
  assert.equal(bus.emit("b", 3), 0);
  assert.deepEqual(calls, [[1, 2]]);
});

test("a registration is removed on its own", () => {
  const bus = new Bus();
  let count = 0;
  const listener = () => (count += 1);
  const removeFirst = bus.on("a", listener);
  bus.on("a", listener);
  assert.equal(bus.emit("a"), 2);
  removeFirst();
  removeFirst();
  assert.equal(bus.emit("a"), 1);
  assert.equal(count, 3);
});

test("once", () => {
  const bus = new Bus();
  const calls = [];
  bus.once("a", (value) => calls.push(value));
  const remove = bus.once("a", (value) => calls.push(-value));
  remove();
  assert.equal(bus.emit("a", 1), 1);
  assert.equal(bus.emit("a", 2), 0);
  assert.deepEqual(calls, [1]);
});

test("changes during an event", () => {
  const bus = new Bus();
  const calls = [];
  let remove = () => {};
  bus.on("a", () => {
    calls.push("first");
    remove();
    bus.on("a", () => calls.push("late"));
  });
  remove = bus.on("a", () => calls.push("second"));
  assert.equal(bus.emit("a"), 2);
  assert.deepEqual(calls, ["first", "second"]);
});

test("an error does not stop the others", () => {
  const bus = new Bus();
  const calls = [];
  bus.on("a", () => {
    throw new Error("one");
  });
  bus.on("a", () => {
    throw new Error("two");
  });
  bus.on("a", () => calls.push("third"));
  assert.throws(() => bus.emit("a"), { message: "one" });
  assert.deepEqual(calls, ["third"]);
});
