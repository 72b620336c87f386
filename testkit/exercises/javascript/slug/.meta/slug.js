export function slug(title, maximum = Infinity) {
  const words = title
    .toLowerCase()
    .replaceAll("ß", "ss")
    .normalize("NFD")
    .replace(/\p{M}/gu, "")
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
  while (words.length > 1 && words.join("-").length > maximum) words.pop();
  const text = words.join("-");
  return text.length > maximum ? text.slice(0, maximum) : text;
}
