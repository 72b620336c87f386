// Numbers and times as people read them.

export function span(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} min ${String(Math.floor(s % 60)).padStart(2, "0")} s`;
  const h = Math.floor(m / 60);
  return h < 48 ? `${h} h ${m % 60} min` : `${Math.floor(h / 24)} d`;
}

export function ago(ms: number, now = Date.now()): string {
  const s = Math.max(0, (now - ms) / 1000);
  if (s < 5) return "now";
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

export const exact = (ms: number) => new Date(ms).toLocaleString();

export function count(n: number): string {
  if (n < 1000) return String(Math.round(n));
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(1)}M`;
}

export const plural = (n: number, what: string) => `${n} ${what}${n === 1 ? "" : "s"}`;

export const dollars = (n: number) => `$${n < 0.1 ? n.toFixed(4) : n.toFixed(2)}`;

export const percent = (share: number) => `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;

/// The argument that says most about a call.
export function gist(args: unknown): string {
  if (!args || typeof args !== "object") return String(args ?? "");
  const found = args as Record<string, unknown>;
  for (const key of ["command", "path", "pattern", "query", "question", "name", "url", "summary"]) {
    if (typeof found[key] === "string") return found[key] as string;
  }
  if (typeof found.patch === "string") return patched(found.patch as string).join(" ");
  const text = JSON.stringify(args);
  return text === "{}" ? "" : text;
}

/// Files that a patch names.
const patched = (patch: string) =>
  [...patch.matchAll(/^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ b?\/?)(.+)$/gm)].map((m) => m[1]!);

export const oneLine = (text: string, most = 160) => {
  const line = text.trim().split("\n")[0] ?? "";
  return line.length > most ? line.slice(0, most) + "…" : line;
};

export const shortId = (run: string) => (/^[0-9a-f]{8}-/.test(run) ? run.slice(0, 8) + "…" + run.slice(-4) : run);
