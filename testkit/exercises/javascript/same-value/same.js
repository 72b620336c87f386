export function same(a, b) {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object") return false;
  for (const key of Object.keys(a)) {
    if (!same(a[key], b[key])) return false;
  }
  return true;
}
