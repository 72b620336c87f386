import assert from "node:assert/strict";
import { test } from "node:test";

import { render } from "./template.js";

test("values are inserted everywhere", () => {
  assert.equal(render("{{a}} and {{b}} and {{a}}", { a: 1, b: "x" }), "1 and x and 1");
  assert.equal(render("Hi {{ name }}!", { name: "Ada" }), "Hi Ada!");
});

test("paths", () => {
  const values = { user: { name: "Ada", address: { city: "London" } } };
  assert.equal(render("{{user.name}}, {{ user.address.city }}", values), "Ada, London");
  assert.equal(render("[{{user.age.years}}]", values), "[]");
});

test("filters", () => {
  assert.equal(render("{{ name | trim | upper }}", { name: " ada " }), "ADA");
  assert.equal(render("{{name|lower}}", { name: "ADA" }), "ada");
  assert.throws(() => render("{{ name | shout }}", { name: "a" }), { message: "unknown filter: shout" });
});

test("missing values", () => {
  assert.equal(render("[{{a}}{{b}}]", { b: null }), "[]");
  assert.equal(render("{{ a | default:friend }}", {}), "friend");
  assert.equal(render("{{ a | default:friend | upper }}", { a: "" }), "FRIEND");
  assert.equal(render("{{ a | default:friend }}", { a: 0 }), "0");
});

test("inserted text is not processed", () => {
  assert.equal(render("{{a}}", { a: "{{b}}", b: "no" }), "{{b}}");
  assert.equal(render("{{a}}", { a: "$& $1" }), "$& $1");
});
