import assert from "node:assert/strict";
import { test } from "node:test";

import { convert } from "./convert.js";
import { format } from "./log.js";

test("celsius and fahrenheit", () => {
  assert.equal(convert(100, "C", "F"), 212);
  assert.equal(convert(32, "F", "C"), 0);
  assert.equal(convert(20, "C", "C"), 20);
});

test("kelvin", () => {
  assert.equal(convert(0, "C", "K"), 273.15);
  assert.equal(convert(300, "K", "C"), 26.85);
  assert.equal(convert(300, "K", "F"), 80.33);
  assert.equal(convert(-459.67, "F", "K"), 0);
});

test("faulty temperatures", () => {
  assert.throws(() => convert(1, "C", "X"), RangeError);
  assert.throws(() => convert(1, "R", "C"), RangeError);
  assert.throws(() => convert(-1, "K", "C"), RangeError);
  assert.throws(() => convert(-300, "C", "C"), RangeError);
});

test("lines are converted and sorted", () => {
  const readings = [
    { time: "12:30", value: 300, unit: "K" },
    { time: "08:00", value: 20, unit: "C" },
  ];
  assert.equal(format(readings, "F"), "08:00  68.0 F\n12:30  80.3 F");
  assert.equal(format(readings), "08:00  20.0 C\n12:30  26.9 C");
  assert.equal(readings[0].time, "12:30");
});

test("a faulty reading", () => {
  const readings = [
    { time: "09:00", value: -5, unit: "K" },
    { time: "10:00", value: 5, unit: "C" },
  ];
  assert.equal(format(readings), "09:00  invalid\n10:00  5.0 C");
  assert.equal(format([]), "");
});
