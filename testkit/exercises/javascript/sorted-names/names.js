export function sortNames(names) {
  return names.sort();
}
