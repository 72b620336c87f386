const PATTERN = /^(?:(\d+)d)?\s*(?:(\d+)h)?\s*(?:(\d+)m)?\s*(?:(\d+)s)?$/;

export function seconds(text) {
  const match = text.trim().match(PATTERN);
  if (!match || text.trim() === "") throw new RangeError(`not a duration: ${text}`);
  const [days, hours, minutes, rest] = match.slice(1).map((part) => Number(part ?? 0));
  return ((days * 24 + hours) * 60 + minutes) * 60 + rest;
}
