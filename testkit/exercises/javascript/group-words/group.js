export function groupBy(items, keyOf) {
  const groups = {};
  for (const item of items) {
    const key = keyOf(item);
    groups[key] = groups[key] || [];
    groups[key].push(item);
  }
  return groups;
}

export function largest(groups) {
  let best;
  for (const key in groups) {
    if (best === undefined || groups[key].length >= groups[best].length) best = key;
  }
  return best;
}
