function bounds(start, end, step) {
  if (end === undefined) [start, end] = [0, start];
  step ??= start > end ? -1 : 1;
  if (step === 0) throw new RangeError("step must not be 0");
  const count = Math.max(0, Math.ceil((end - start) / step));
  return [start, step, count];
}

export function range(...values) {
  const [start, step, count] = bounds(...values);
  return Array.from({ length: count }, (_, index) => start + index * step);
}

export function sumOf(...values) {
  const [start, step, count] = bounds(...values);
  return count * start + (step * (count * (count - 1))) / 2;
}
