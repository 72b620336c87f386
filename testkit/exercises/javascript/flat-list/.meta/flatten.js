export function flatten(list, depth = Infinity) {
  const result = [];
  for (const item of list) {
    if (item === null || item === undefined) continue;
    if (Array.isArray(item) && depth > 0) result.push(...flatten(item, depth - 1));
    else result.push(item);
  }
  return result;
}

export function depthOf(list) {
  return 1 + Math.max(0, ...list.filter(Array.isArray).map(depthOf));
}
