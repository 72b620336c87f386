export function range(start, end) {
  const numbers = [];
  for (let number = start; number < end; number += 1) {
    numbers.push(number);
  }
  return numbers;
}
