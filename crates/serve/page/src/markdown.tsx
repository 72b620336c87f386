// Markdown as elements. Text stays text: nothing a model writes becomes markup, and only http(s) links can be followed.
import type { ComponentChildren } from "preact";
import { Code } from "./parts";

const INLINE = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*([^*\n]+)\*\*|__([^_\n]+)__|\*([^*\s][^*\n]*)\*|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>)\]]+)/;

function inline(text: string): ComponentChildren[] {
  const parts: ComponentChildren[] = [];
  let rest = text;
  for (let n = 0; n < 2000; n++) {
    const match = INLINE.exec(rest);
    if (!match) break;
    if (match.index) parts.push(rest.slice(0, match.index));
    const [whole, , code, bold, bold2, italic, label, href, bare] = match;
    if (code !== undefined) parts.push(<code>{code}</code>);
    else if (bold ?? bold2) parts.push(<strong>{inline((bold ?? bold2)!)}</strong>);
    else if (italic) parts.push(<em>{inline(italic)}</em>);
    else parts.push(<a href={href ?? bare} target="_blank" rel="noopener noreferrer">{label ?? bare}</a>);
    rest = rest.slice(match.index + whole.length);
  }
  parts.push(rest);
  return parts;
}

export function Markdown({ text }: { text: string }) {
  const blocks: ComponentChildren[] = [];
  const lines = text.split("\n");
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    const fence = /^\s*(`{3,}|~{3,})\s*([\w+-]*)/.exec(line);
    if (fence) {
      const body: string[] = [];
      at++;
      while (at < lines.length && !lines[at]!.trim().startsWith(fence[1]!)) body.push(lines[at++]!);
      at++;
      blocks.push(<Code text={body.join("\n")} diff={fence[2] === "diff"} />);
      continue;
    }
    const heading = /^(#{1,6})\s+(.*)/.exec(line);
    if (heading) {
      // The page has the levels above.
      const Tag = `h${Math.min(6, heading[1]!.length + 2)}` as "h3";
      blocks.push(<Tag>{inline(heading[2]!)}</Tag>);
      at++;
      continue;
    }
    if (/^\s*([-*+]|\d+[.)])\s+/.test(line)) {
      const ordered = /^\s*\d/.test(line);
      const items: ComponentChildren[] = [];
      while (at < lines.length && /^\s*([-*+]|\d+[.)])\s+/.test(lines[at]!)) {
        let item = lines[at++]!.replace(/^\s*([-*+]|\d+[.)])\s+/, "");
        while (at < lines.length && /^\s{2,}\S/.test(lines[at]!) && !/^\s*([-*+]|\d+[.)])\s+/.test(lines[at]!)) item += "\n" + lines[at++]!.trim();
        items.push(<li>{inline(item)}</li>);
      }
      blocks.push(ordered ? <ol>{items}</ol> : <ul>{items}</ul>);
      continue;
    }
    if (line.startsWith("|") && /^\|[\s:|-]+\|?\s*$/.test(lines[at + 1] ?? "")) {
      const cells = (row: string) => row.replace(/^\||\|\s*$/g, "").split("|").map((cell) => inline(cell.trim()));
      const head = cells(line);
      const body: ComponentChildren[][][] = [];
      at += 2;
      while (at < lines.length && lines[at]!.startsWith("|")) body.push(cells(lines[at++]!));
      blocks.push(
        <table>
          <thead><tr>{head.map((cell) => <th>{cell}</th>)}</tr></thead>
          <tbody>{body.map((row) => <tr>{row.map((cell) => <td>{cell}</td>)}</tr>)}</tbody>
        </table>,
      );
      continue;
    }
    if (line.startsWith(">")) {
      const quoted: string[] = [];
      while (at < lines.length && lines[at]!.startsWith(">")) quoted.push(lines[at++]!.replace(/^>\s?/, ""));
      blocks.push(<blockquote>{inline(quoted.join("\n"))}</blockquote>);
      continue;
    }
    if (!line.trim()) {
      at++;
      continue;
    }
    const paragraph: string[] = [];
    while (at < lines.length && lines[at]!.trim() && !/^(\s*(`{3,}|~{3,}|[-*+]\s|\d+[.)]\s)|#{1,6}\s|>|\|)/.test(lines[at]!)) paragraph.push(lines[at++]!);
    if (!paragraph.length) paragraph.push(lines[at++]!);
    blocks.push(<p>{inline(paragraph.join("\n"))}</p>);
  }
  return <div class="markdown">{blocks}</div>;
}
