export function isCorrect(question, answer) {
  if (!question.choices) return question.answer.trim().toLowerCase() === answer.trim().toLowerCase();
  const right = new Set(question.answer);
  const given = new Set(answer);
  return right.size === given.size && [...right].every((index) => given.has(index));
}

export function points(question) {
  return question.points ?? (question.choices ? question.answer.length : 1);
}
