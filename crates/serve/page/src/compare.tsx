// Two runs side by side, aligned by their actions.
import { useState } from "preact/hooks";
import type { Action, Comparison, RunSummary, Side } from "./api";
import { get } from "./api";
import { count, dollars, oneLine, shortId, span } from "./format";
import { Diff, Problem, useLoad } from "./parts";
import { setQuery, usePlace } from "./router";

export function Compare() {
  const { query } = usePlace();
  const [a, b] = [query.get("a") ?? "", query.get("b") ?? ""];
  const [runs] = useLoad((signal) => get<RunSummary[]>("/api/runs?limit=200", signal), []);
  const [result, error] = useLoad((signal) => (a && b ? get<Comparison>(`/api/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`, signal) : Promise.resolve(undefined)), [a, b]);
  const [onlyDifferent, setOnly] = useState(false);
  const pick = (side: "a" | "b", value: string) => (
    <label class="grow"><span class="sr">{side === "a" ? "First run" : "Second run"}</span>
      <select value={value} onChange={(e) => setQuery({ [side]: e.currentTarget.value }, false)}>
        <option value="">choose a run</option>
        {value && !runs?.some((run) => run.run === value) && <option value={value}>{shortId(value)}</option>}
        {(runs ?? []).map((run) => <option key={run.run} value={run.run}>{oneLine(run.title, 60) || shortId(run.run)} ({shortId(run.run)})</option>)}
      </select>
    </label>
  );
  return (
    <main>
      <h1>Compare</h1>
      <div class="toolbar">{pick("a", a)}{pick("b", b)}</div>
      {error !== undefined && <Problem error={error} />}
      {!result && !error && <p class="empty">Choose two runs. In the inbox, <kbd>x</kbd> marks a run and <kbd>c</kbd> compares.</p>}
      {result && <Facts a={result.a} b={result.b} />}
      {result && (result.settings.length > 0 || result.only_a.length > 0 || result.only_b.length > 0) && (
        <section>
          <h2>Settings that differ</h2>
          <table class="data" tabIndex={0}>
            <tbody>
              {result.settings.map((setting) => <tr key={setting.name}><th>{setting.name}</th><td><code>{oneLine(JSON.stringify(setting.a), 200)}</code></td><td><code>{oneLine(JSON.stringify(setting.b), 200)}</code></td></tr>)}
              {(result.only_a.length > 0 || result.only_b.length > 0) && <tr><th>tools</th><td>{result.only_a.map((tool) => <code class="chip">{tool}</code>)}</td><td>{result.only_b.map((tool) => <code class="chip">{tool}</code>)}</td></tr>}
            </tbody>
          </table>
        </section>
      )}
      {result?.prompt_diff && <section><h2>Prompt</h2><details><summary>the system prompts differ</summary><Diff text={result.prompt_diff} /></details></section>}
      {result && (
        <section>
          <h2>Actions <span class="dim">{result.first_difference === undefined ? "all the same" : `first difference in row ${result.first_difference + 1}`}</span></h2>
          <label class="inline"><input type="checkbox" checked={onlyDifferent} onChange={(e) => setOnly(e.currentTarget.checked)} /> only what differs</label>
          <table class="aligned">
            <thead><tr><th class="num">#</th><th>{shortId(a)}</th><th>{shortId(b)}</th></tr></thead>
            <tbody>
              {result.actions.map((row, n) =>
                onlyDifferent && row.same ? null : (
                  <tr key={n} class={`${row.same ? "" : "differs"} ${n === result.first_difference ? "first" : ""}`}>
                    <td class="num dim">{n + 1}</td>
                    <td>{row.a && <Cell run={a} action={row.a} />}</td>
                    <td>{row.b && <Cell run={b} action={row.b} />}</td>
                  </tr>
                ),
              )}
            </tbody>
          </table>
        </section>
      )}
    </main>
  );
}

const Cell = ({ run, action }: { run: string; action: Action }) => (
  <a href={`/runs/${run}?event=${action.seq}`} class={action.ok === false ? "failed" : ""}>
    <b>{action.name}</b> {oneLine(action.text, 110)} {action.ms !== undefined && <span class="dim">{span(action.ms)}</span>} {action.ok === false && "✗"}
  </a>
);

function Facts({ a, b }: { a: Side; b: Side }) {
  const row = (name: string, show: (side: Side) => string, value?: (side: Side) => number | undefined) => {
    const [left, right] = [value?.(a), value?.(b)];
    const by = left !== undefined && right !== undefined && left > 0 ? (right - left) / left : undefined;
    return <tr key={name}><th>{name}</th><td>{show(a)}</td><td>{show(b)}</td><td class="num dim">{by !== undefined && Math.abs(by) >= 0.005 ? `${by > 0 ? "+" : ""}${(by * 100).toFixed(0)} %` : ""}</td></tr>;
  };
  return (
    <table class="data">
      <thead><tr><td /><th><a href={`/runs/${a.run}`}>{a.title || shortId(a.run)}</a></th><th><a href={`/runs/${b.run}`}>{b.title || shortId(b.run)}</a></th><td /></tr></thead>
      <tbody>
        {row("result", (side) => side.end?.error ?? side.end?.status ?? "open")}
        {row("model", (side) => side.model)}
        {row("time", (side) => (side.took_ms === undefined ? "" : span(side.took_ms)), (side) => side.took_ms)}
        {row("waiting for the model", (side) => span(side.totals.model_ms - side.totals.output_ms), (side) => side.totals.model_ms - side.totals.output_ms)}
        {row("output of the model", (side) => span(side.totals.output_ms), (side) => side.totals.output_ms)}
        {row("in tools", (side) => span(side.totals.tool_ms), (side) => side.totals.tool_ms)}
        {row("waiting for you", (side) => span(side.totals.user_ms), (side) => side.totals.user_ms)}
        {row("turns", (side) => String(side.totals.turns), (side) => side.totals.turns)}
        {row("tokens", (side) => count(side.totals.tokens), (side) => side.totals.tokens)}
        {row("cost", (side) => (side.totals.cost_usd === undefined ? "unknown" : dollars(side.totals.cost_usd)), (side) => side.totals.cost_usd)}
        {row("calls", (side) => Object.entries(side.totals.tools).map(([name, tool]) => `${name} ${tool.calls}${tool.errors ? ` (${tool.errors} failed)` : ""}`).join(", "))}
        {row("files changed", (side) => side.totals.files.join(", "))}
        {row("answer", (side) => oneLine(side.end?.answer ?? "", 200))}
      </tbody>
    </table>
  );
}
