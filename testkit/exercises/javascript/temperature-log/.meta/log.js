import { convert } from "./convert.js";

function line({ time, value, unit }, to) {
  try {
    return `${time}  ${convert(value, unit, to).toFixed(1)} ${to}`;
  } catch {
    return `${time}  invalid`;
  }
}

export function format(readings, unit = "C") {
  return [...readings]
    .sort((a, b) => (a.time < b.time ? -1 : 1))
    .map((reading) => line(reading, unit))
    .join("\n");
}
