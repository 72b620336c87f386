export function pageOf(items, page, size) {
  const pages = Math.floor(items.length / size) + 1;
  const start = (page - 1) * (size - 1);
  return { items: items.slice(start, start + size), page, pages };
}
