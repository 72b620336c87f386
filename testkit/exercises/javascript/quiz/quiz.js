import { isCorrect } from "./question.js";

export class Quiz {
  constructor(questions) {
    this.questions = questions;
    this.right = 0;
  }

  answer(given) {
    if (isCorrect(this.questions[0], given)) this.right += 1;
  }

  score() {
    return this.right;
  }
}
