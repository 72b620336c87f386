const TO_CELSIUS = { C: (value) => value, F: (value) => (value - 32) / 1.8, K: (value) => value - 273.15 };
const FROM_CELSIUS = { C: (value) => value, F: (value) => value * 1.8 + 32, K: (value) => value + 273.15 };

export function convert(value, from, to) {
  if (!Object.hasOwn(TO_CELSIUS, from) || !Object.hasOwn(FROM_CELSIUS, to)) throw new RangeError("unknown unit");
  const celsius = TO_CELSIUS[from](value);
  if (celsius < -273.15 - 1e-9) throw new RangeError("below absolute zero");
  return Math.round(FROM_CELSIUS[to](celsius) * 100) / 100;
}
