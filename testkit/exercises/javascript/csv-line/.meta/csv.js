export function parseLine(line) {
  const fields = [];
  let at = 0;
  for (;;) {
    let field = "";
    if (line[at] === '"') {
      at += 1;
      for (;;) {
        if (at >= line.length) throw new SyntaxError("unclosed quote");
        if (line[at] !== '"') field += line[at];
        else if (line[at + 1] === '"') {
          field += '"';
          at += 1;
        } else break;
        at += 1;
      }
      at += 1;
      if (at < line.length && line[at] !== ",") throw new SyntaxError("text after a quote");
    } else {
      while (at < line.length && line[at] !== ",") {
        if (line[at] === '"') throw new SyntaxError("quote inside a field");
        field += line[at];
        at += 1;
      }
    }
    fields.push(field);
    if (at >= line.length) return fields;
    at += 1;
  }
}
