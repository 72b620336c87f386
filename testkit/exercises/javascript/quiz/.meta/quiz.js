import { isCorrect, points } from "./question.js";

export class Quiz {
  constructor(questions) {
    this.questions = questions;
    this.next = 0;
    this.points = 0;
  }

  answer(given) {
    if (this.next >= this.questions.length) throw new Error("the quiz is over");
    const question = this.questions[this.next];
    this.next += 1;
    const right = isCorrect(question, given);
    if (right) this.points += points(question);
    return right;
  }

  score() {
    const of = this.questions.reduce((sum, question) => sum + points(question), 0);
    const percent = of === 0 ? 0 : Math.floor((this.points * 100) / of);
    return { points: this.points, of, percent, done: this.next === this.questions.length };
  }
}
