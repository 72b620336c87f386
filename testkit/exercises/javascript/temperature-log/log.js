export function format(readings) {
  return readings.map((reading) => `${reading.time}  ${reading.value} ${reading.unit}`).join("\n");
}
