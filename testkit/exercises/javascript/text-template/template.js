export function render(template, values) {
  let result = template;
  for (const name in values) {
    result = result.replace("{{" + name + "}}", values[name]);
  }
  return result;
}
