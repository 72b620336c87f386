const UNITS = { d: 86400, h: 3600, m: 60, s: 1 };

export function seconds(text) {
  const match = text.match(/(\d+)([dhms])/);
  return Number(match[1]) * UNITS[match[2]];
}
