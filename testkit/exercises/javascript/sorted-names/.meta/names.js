function key(name) {
  const words = name.toLowerCase().split(" ");
  const last = words.pop();
  return [last, words.join(" ")];
}

function compare(a, b) {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

export function sortNames(names) {
  return [...names].sort((a, b) => {
    const [lastA, restA] = key(a);
    const [lastB, restB] = key(b);
    return compare(lastA, lastB) || compare(restA, restB);
  });
}
