export function isCorrect(question, answer) {
  return question.answer === answer;
}
