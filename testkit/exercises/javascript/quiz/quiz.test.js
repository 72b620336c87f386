import assert from "node:assert/strict";
import { test } from "node:test";

import { isCorrect, points } from "./question.js";
import { Quiz } from "./quiz.js";

const capital = { text: "Capital of France?", answer: "Paris" };
const primes = { text: "Which are prime?", choices: ["2", "4", "5"], answer: [0, 2] };
const hard = { text: "Meaning?", answer: "42", points: 5 };

test("text answers", () => {
  assert.equal(isCorrect(capital, " paris "), true);
  assert.equal(isCorrect(capital, "Lyon"), false);
});

test("choices", () => {
  assert.equal(isCorrect(primes, [2, 0]), true);
  assert.equal(isCorrect(primes, [0, 2, 0]), true);
  assert.equal(isCorrect(primes, [0]), false);
  assert.equal(isCorrect(primes, [0, 1, 2]), false);
  assert.equal(isCorrect(primes, []), false);
});

test("points", () => {
  assert.deepEqual([capital, primes, hard].map(points), [1, 2, 5]);
});

test("a whole quiz", () => {
  const quiz = new Quiz([capital, primes, hard]);
  assert.deepEqual(quiz.score(), { points: 0, of: 8, percent: 0, done: false });
  assert.equal(quiz.answer("PARIS"), true);
  assert.equal(quiz.answer([1]), false);
  assert.deepEqual(quiz.score(), { points: 1, of: 8, percent: 12, done: false });
  assert.equal(quiz.answer("42"), true);
  assert.deepEqual(quiz.score(), { points: 6, of: 8, percent: 75, done: true });
  assert.throws(() => quiz.answer("more"), Error);
});

test("an empty quiz", () => {
  assert.deepEqual(new Quiz([]).score(), { points: 0, of: 0, percent: 0, done: true });
});
