export function slug(title, maximum) {
  throw new Error("not implemented");
}
