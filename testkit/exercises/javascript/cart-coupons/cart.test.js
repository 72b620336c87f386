import assert from "node:assert/strict";
import { test } from "node:test";

import { Cart } from "./cart.js";

test("prices and counts are added up", () => {
  assert.equal(new Cart().total(), 0);
  assert.equal(new Cart().add("tea", 350, 2).add("cup", 999).total(), 1699);
});

test("ten percent", () => {
  const cart = new Cart().add("tea", 355);
  cart.apply("TEN");
  assert.equal(cart.total(), 320);
});

test("five off, but never below nothing", () => {
  const cart = new Cart().add("tea", 350);
  cart.apply("fiver");
  assert.equal(cart.total(), 0);
  cart.add("pot", 1000);
  assert.equal(cart.total(), 850);
});

test("the cheapest piece is free", () => {
  const cart = new Cart().add("tea", 350, 3).add("pot", 1000);
  cart.apply("Gift");
  assert.equal(cart.total(), 1700);
});

test("the order of the codes does not matter", () => {
  const cart = new Cart().add("tea", 350, 3).add("pot", 1000);
  for (const code of ["fiver", "ten", "gift"]) cart.apply(code);
  assert.equal(cart.total(), 1030);
  assert.deepEqual(cart.coupons(), ["FIVER", "TEN", "GIFT"]);
});

test("faulty codes", () => {
  const cart = new Cart().add("tea", 1000);
  cart.apply("TEN");
  assert.throws(() => cart.apply("ten"), Error);
  assert.throws(() => cart.apply("FREE"), Error);
  assert.equal(cart.total(), 900);
  assert.deepEqual(cart.coupons(), ["TEN"]);
});

test("a gift in an empty cart", () => {
  const cart = new Cart();
  cart.apply("GIFT");
  assert.equal(cart.total(), 0);
});
