// Small elements that several pages use.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { State } from "./api";
import { ago, exact } from "./format";

const STATES: Record<State, string> = {
  needs_you: "needs you",
  running: "running",
  interrupted: "interrupted",
  completed: "done",
  failed: "failed",
  cancelled: "cancelled",
};

export const Badge = ({ state }: { state: State }) => <span class={`badge ${state}`}>{STATES[state]}</span>;

/// A relative time, exact on hover. All of them are updated together.
const ticking = new Set<() => void>();
setInterval(() => ticking.forEach((tick) => tick()), 5000);

export function Ago({ ms }: { ms: number }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const update = () => tick((n) => n + 1);
    ticking.add(update);
    return () => void ticking.delete(update);
  }, []);
  return <time dateTime={new Date(ms).toISOString()} title={exact(ms)}>{ago(ms)}</time>;
}

export function Copy({ text, what = "Copy" }: { text: string | (() => string); what?: string }) {
  const [done, set] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(typeof text === "string" ? text : text()).catch(() => {});
    set(true);
    setTimeout(() => set(false), 1200);
  };
  return <button class="copy" type="button" onClick={copy} aria-label={what} title={what}>{done ? "copied" : "copy"}</button>;
}

/// Lines of a diff.
export function Diff({ text }: { text: string }) {
  const kind = (line: string) =>
    /^(@@|\*\*\*|---|\+\+\+|diff |index )/.test(line) ? "at" : line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "";
  return <pre class="diff" tabIndex={0}>{text.split("\n").map((line) => <span class={kind(line)}>{line + "\n"}</span>)}</pre>;
}

export function Code({ text, diff }: { text: string; diff?: boolean }) {
  return (
    <div class="code">
      <Copy text={text} />
      {diff ? <Diff text={text} /> : <pre tabIndex={0}>{text}</pre>}
    </div>
  );
}

/// A long text, cut until it is opened.
export function Long({ text, lines = 14, diff }: { text: string; lines?: number; diff?: boolean }) {
  const [open, set] = useState(false);
  const all = text.split("\n");
  const cut = !open && (all.length > lines + 2 || text.length > 6000);
  const shown = cut ? all.slice(0, lines).join("\n").slice(0, 6000) : text;
  return (
    <div>
      <Code text={shown} diff={diff} />
      {cut && <button class="link" type="button" onClick={() => set(true)}>show all {all.length} lines</button>}
      {open && <button class="link" type="button" onClick={() => set(false)}>show less</button>}
    </div>
  );
}

/// How much of something is used; `limit` warns where it is nearly all.
export function Meter({ value, of, label, limit }: { value: number; of: number; label: string; limit?: boolean }) {
  const share = of > 0 ? Math.min(1, value / of) : 0;
  return (
    <span class={`meter ${limit && share > 0.85 ? "high" : ""}`} role="meter" aria-valuenow={Math.round(share * 100)} aria-valuemin={0} aria-valuemax={100} aria-label={label} title={label}>
      <span style={{ width: `${share * 100}%` }} />
    </span>
  );
}

export function Problem({ error, children }: { error: unknown; children?: ComponentChildren }) {
  const help = (error as { help?: string }).help;
  return (
    <p class="problem" role="alert">
      {(error as Error).message ?? String(error)}
      {help && <span class="dim"> ({help})</span>}
      {children}
    </p>
  );
}

/// What a call would do: a command, a diff, or its arguments.
export function Call({ name, args }: { name: string; args: any }) {
  if (args && typeof args === "object") {
    if (typeof args.command === "string") return <Code text={args.command} />;
    if (typeof args.patch === "string") return <Long text={args.patch} lines={60} diff />;
    const [before, after] = [args.old ?? args.old_string, args.new ?? args.new_string];
    if (typeof before === "string" && typeof after === "string") {
      const lines = (text: string, sign: string) => text.split("\n").map((line) => sign + line).join("\n");
      return <Long text={`*** ${args.path ?? ""}\n${lines(before, "-")}\n${lines(after, "+")}`} lines={60} diff />;
    }
    if (name === "write_file" && typeof args.content === "string") {
      return <Long text={`*** ${args.path ?? ""}\n${args.content.split("\n").map((line: string) => "+" + line).join("\n")}`} lines={60} diff />;
    }
    if (typeof args.question === "string") return <p>{args.question}</p>;
  }
  const text = typeof args === "string" ? args : JSON.stringify(args, null, 2);
  return text === "{}" ? null : <Long text={text} />;
}

/// Loads something, and again when `again` changes. Keeps the old value meanwhile, so that nothing jumps.
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, again: unknown[]): [T | undefined, unknown, () => void] {
  const [state, set] = useState<{ value?: T; error?: unknown }>({});
  const [n, reload] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    load(stop.signal).then(
      (value) => set({ value }),
      (error) => !stop.signal.aborted && set((old) => ({ ...old, error })),
    );
    return () => stop.abort();
  }, [...again, n]);
  return [state.value, state.error, () => reload((n) => n + 1)];
}

/// Calls `act` in an interval while the page is visible.
export function useInterval(act: () => void, ms: number) {
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && act(), ms);
    return () => clearInterval(timer);
  });
}
