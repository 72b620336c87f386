import assert from "node:assert/strict";
import { test } from "node:test";

import { seconds } from "./duration.js";

test("one unit", () => {
  assert.equal(seconds("45s"), 45);
  assert.equal(seconds("90m"), 5400);
  assert.equal(seconds("2h"), 7200);
  assert.equal(seconds("1d"), 86400);
});

test("several units", () => {
  assert.equal(seconds("1h30m"), 5400);
  assert.equal(seconds("2d 4h"), 187200);
  assert.equal(seconds("1d1h1m1s"), 90061);
  assert.equal(seconds(" 1m  5s "), 65);
});

test("zero", () => {
  assert.equal(seconds("0s"), 0);
});

test("faulty texts", () => {
  for (const text of ["", " ", "5", "h", "1x", "1m1h", "1h1h", "1h 30", "-1s", "1.5h", "1h,2m"]) {
    assert.throws(() => seconds(text), RangeError, text);
  }
});
