const FILTERS = {
  upper: (text) => text.toUpperCase(),
  lower: (text) => text.toLowerCase(),
  trim: (text) => text.trim(),
};

function apply(text, filter) {
  if (filter.startsWith("default:")) return text === "" ? filter.slice("default:".length) : text;
  if (!Object.hasOwn(FILTERS, filter)) throw new Error(`unknown filter: ${filter}`);
  return FILTERS[filter](text);
}

export function render(template, values) {
  return template.replace(/\{\{(.*?)\}\}/g, (_, inside) => {
    const [path, ...filters] = inside.split("|").map((part) => part.trim());
    const value = path.split(".").reduce((object, name) => object?.[name], values);
    return filters.reduce(apply, String(value ?? ""));
  });
}
