export function convert(value, from, to) {
  if (from === "C" && to === "F") return value * 1.8 + 32;
  return (value - 32) / 1.8;
}
