import assert from "node:assert/strict";
import { test } from "node:test";

import { slug } from "./slug.js";

test("plain titles", () => {
  assert.equal(slug("Hello World"), "hello-world");
  assert.equal(slug("Top 10 tips"), "top-10-tips");
});

test("other characters are replaced once", () => {
  assert.equal(slug("  What?! -- Really...  "), "what-really");
  assert.equal(slug("C++ & Rust"), "c-rust");
});

test("accents are removed", () => {
  assert.equal(slug("Café Überraschung"), "cafe-uberraschung");
  assert.equal(slug("Große Straße"), "grosse-strasse");
});

test("nothing is left", () => {
  assert.equal(slug("!!!"), "");
  assert.equal(slug(""), "");
});

test("words are dropped to fit", () => {
  assert.equal(slug("one two three", 13), "one-two-three");
  assert.equal(slug("one two three", 12), "one-two");
  assert.equal(slug("one two three", 6), "one");
  assert.equal(slug("extraordinary day", 5), "extra");
});
