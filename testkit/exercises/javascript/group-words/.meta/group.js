export function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return groups;
}

export function largest(groups) {
  let best;
  let size = 0;
  for (const [key, items] of groups) {
    if (items.length > size) {
      best = key;
      size = items.length;
    }
  }
  return best;
}
