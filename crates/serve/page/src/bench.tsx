// Benchmark jobs: a table, plots, the trials of a job, and two jobs compared case by case. The page of `fusee bench report`, live.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { BenchComparison, Job, JobDetail, Trial } from "./api";
import { get } from "./api";
import { count, dollars, percent, plural, span } from "./format";
import { Ago, Meter, Problem, useInterval, useLoad } from "./parts";
import { setQuery, usePlace } from "./router";

const path = (job: string) => job.replaceAll("~", "/");
const points = (share: number) => `${share >= 0 ? "+" : "−"}${Math.abs(share * 100).toFixed(1)}`;

export function Bench() {
  const { query } = usePlace();
  const [job, other] = [query.get("job") ?? "", query.get("with") ?? ""];
  const [jobs, error, reload] = useLoad((signal) => get<Job[]>("/api/bench/jobs", signal), []);
  const [detail, missing, again] = useLoad((signal) => (job ? get<JobDetail>(`/api/bench/jobs/${encodeURIComponent(job)}`, signal) : Promise.resolve(undefined)), [job]);
  const pair = `/api/bench/compare?a=${encodeURIComponent(job)}&b=${encodeURIComponent(other)}`;
  const [compared, unknown, recompare] = useLoad((signal) => (job && other ? get<BenchComparison>(pair, signal) : Promise.resolve(undefined)), [pair]);
  useInterval(() => (reload(), again(), recompare()), 5000);
  const costs = jobs?.some((row) => row.cost_usd !== undefined);
  return (
    <main>
      <h1>Benchmarks</h1>
      {[error, missing, unknown].map((problem, n) => problem !== undefined && <Problem key={n} error={problem} />)}
      {jobs && !jobs.length && <p class="empty">No jobs here. <code>fusee bench run SUITE -m MODEL --out bench/NAME</code> makes one.</p>}
      {jobs && jobs.length > 0 && (
        <>
          <table class="data" tabIndex={0}>
            <thead><tr><th>job</th><th>models</th><th>flows</th><th class="num">trials</th><th class="num">passed</th><th class="num">95 % interval</th><th class="num">cost</th><th class="num">tokens</th><th>changed</th><th /></tr></thead>
            <tbody>
              {jobs.map((row) => (
                <tr key={row.job} class={row.job === job ? "focused" : ""}>
                  <td><a href={`/bench?job=${encodeURIComponent(row.job)}`}>{path(row.job)}</a> {row.running && <span class="badge running">running</span>}</td>
                  <td>{row.models.join(", ")}</td>
                  <td>{row.flows.join(", ")}</td>
                  <td class="num">{row.planned !== undefined && row.planned > row.trials ? `${row.trials} of ${row.planned}` : row.trials}</td>
                  <td class="num">{row.graded ? percent(row.pass_rate) : ""}</td>
                  <td class="num">{row.graded ? `${percent(row.low)} to ${percent(row.high)}` : ""}</td>
                  <td class="num">{row.cost_usd === undefined ? "" : dollars(row.cost_usd)}</td>
                  <td class="num">{count(row.tokens)}</td>
                  <td><Ago ms={row.changed_ms} /></td>
                  <td>{job && row.job !== job && <button class="link" aria-label={`Compare with ${path(row.job)}`} onClick={() => setQuery({ with: row.job }, false)}>compare</button>}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <div class="plots">
            <Plot title="Pass rate with 95 % interval" labels={jobs.map((row) => row.job)} names={jobs.map((row) => row.job.replace(/^.*~/, ""))} x={jobs.map((_, n) => n + 1)} y={jobs.map((row) => row.pass_rate * 100)} low={jobs.map((row) => row.low * 100)} high={jobs.map((row) => row.high * 100)} xLabel="job" yLabel="%" />
            <Plot title={costs ? "Cost of a trial and pass rate" : "Tokens of a trial and pass rate"} labels={jobs.map((row) => row.job)} x={jobs.map((row) => (costs ? (row.cost_usd ?? 0) : row.tokens) / Math.max(1, row.trials))} y={jobs.map((row) => row.pass_rate * 100)} low={jobs.map((row) => row.low * 100)} high={jobs.map((row) => row.high * 100)} xLabel={costs ? "US dollars" : "tokens"} yLabel="%" />
          </div>
        </>
      )}
      {compared && <Compared a={job} b={other} comparison={compared} />}
      {detail && <Trials detail={detail} />}
    </main>
  );
}

function Trials({ detail }: { detail: JobDetail }) {
  const trials = detail.results;
  const by = (of: (trial: Trial) => number) => ({ labels: trials.map((t) => t.case), x: trials.map((_, n) => n + 1), y: trials.map(of) });
  return (
    <section>
      <h2>{path(detail.job)} <span class="dim">{detail.passed} of {detail.graded} passed</span></h2>
      {trials.length > 0 && (
        <div class="plots">
          <Plot title="Turns by trial" {...by((t) => t.turns)} xLabel="trial" yLabel="turns" />
          <Plot title="Tokens by trial" {...by((t) => t.tokens)} xLabel="trial" yLabel="tokens" />
          <Plot title="Time by trial" {...by((t) => t.seconds)} xLabel="trial" yLabel="seconds" />
        </div>
      )}
      <Counts title="Failures by cause" counts={detail.causes} />
      <Counts title="Failed tool calls by tool" counts={detail.tool_errors} />
      {detail.languages.length > 0 && (
        <table class="data">
          <thead><tr><th>language</th><th class="num">passed</th><th class="num">rate</th><th class="num">95 % interval</th></tr></thead>
          <tbody>{detail.languages.map((row) => <tr key={row.language}><td>{row.language}</td><td class="num">{row.passed} of {row.graded}</td><td class="num">{percent(row.passed / row.graded)}</td><td class="num">{percent(row.low)} to {percent(row.high)}</td></tr>)}</tbody>
        </table>
      )}
      {detail.flaky.length > 0 && <p>Flaky: {detail.flaky.join(", ")} <span class="dim">passed in some attempts only</span></p>}
      {trials.length > 0 && (
        <table class="data" tabIndex={0}>
          <thead><tr><th>case</th><th class="num">attempt</th><th class="num">tries</th><th>result</th><th>model</th><th>flow</th><th class="num">turns</th><th class="num">tokens</th><th class="num">cost</th><th class="num">time</th></tr></thead>
          <tbody>{trials.map((trial) => (
            <tr key={`${trial.case} ${trial.attempt}`}>
              <td>{trial.run ? <a href={`/runs/${trial.run}`}>{trial.case}</a> : trial.case}</td>
              <td class="num">{trial.attempt}</td>
              <td class="num">{trial.tries}</td>
              <td class={trial.passed ? "" : trial.graded ? "failed" : "dim"} title={trial.message}>{trial.passed ? "passed" : `${trial.graded ? "failed" : "not graded"}${trial.cause ? ` (${trial.cause})` : ""}`}</td>
              <td>{trial.model}</td>
              <td>{trial.flow}</td>
              <td class="num">{trial.turns}</td>
              <td class="num">{count(trial.tokens)}</td>
              <td class="num">{trial.cost_usd === undefined ? "" : dollars(trial.cost_usd)}</td>
              <td class="num">{span(trial.seconds * 1000)}</td>
            </tr>
          ))}</tbody>
        </table>
      )}
    </section>
  );
}

function Counts({ title, counts }: { title: string; counts: Record<string, number> }) {
  const rows = Object.entries(counts).sort(([, a], [, b]) => b - a);
  if (!rows.length) return null;
  return (
    <figure class="causes">
      <figcaption>{title}</figcaption>
      {rows.map(([name, n]) => <div key={name}><span class="clip">{name}</span><Meter value={n} of={rows[0]![1]} label={`${name}: ${n}`} /><span class="num">{n}</span></div>)}
    </figure>
  );
}

function Compared({ a, b, comparison }: { a: string; b: string; comparison: BenchComparison }) {
  const { cases, difference, low, high, p, needed } = comparison;
  const told = (low > 0 || high < 0) && p < 0.05;
  const result = (value: boolean | number) => (typeof value === "number" ? percent(value) : value ? "passed" : "failed");
  const runs = (value: boolean | number, ids: string[]) => (
    <td class={value === false ? "failed" : ""}>
      {result(value)} {ids.map((run, n) => run && <a key={run + n} href={`/runs/${run}`}>{ids.length > 1 ? `run ${n + 1} ` : "run"}</a>)}
    </td>
  );
  return (
    <section class="compared">
      <h2>{path(a)} against {path(b)} <button class="link" onClick={() => setQuery({ with: undefined }, false)}>close</button></h2>
      {!cases && <p class="empty">These jobs have no graded case in common.</p>}
      {cases > 0 && (
        <>
          <p class="verdict">
            <strong>{points(difference)} points</strong> <span class="dim">95 % interval {points(low)} to {points(high)}, p = {p.toFixed(4)} ({comparison.test}), {plural(cases, "paired case")}</span>:{" "}
            {told ? `${path(difference > 0 ? a : b)} is better.` : "the difference is not statistically significant."}
            {needed ? ` To see a difference of ${comparison.points} points, ${needed} cases are needed.` : ""}
          </p>
          {comparison.unpaired > 0 && <p class="dim">{plural(comparison.unpaired, "trial")} without a graded counterpart left out.</p>}
          {comparison.flaky.length > 0 && <p>Flaky: {comparison.flaky.join(", ")}</p>}
          <h3>Flipped <span class="dim">{comparison.flipped.length} of {plural(cases, "case")}</span></h3>
          {comparison.flipped.length > 0 && (
            <table class="data" tabIndex={0}>
              <thead><tr><th>case</th><th>{path(a)}</th><th>{path(b)}</th><th /></tr></thead>
              <tbody>{comparison.flipped.map((flip) => (
                <tr key={flip.case}>
                  <td>{flip.case}</td>
                  {runs(flip.a, flip.a_runs)}
                  {runs(flip.b, flip.b_runs)}
                  <td>{flip.a_runs[0] && flip.b_runs[0] && <a href={`/compare?a=${flip.a_runs[0]}&b=${flip.b_runs[0]}`}>compare</a>}</td>
                </tr>
              ))}</tbody>
            </table>
          )}
        </>
      )}
    </section>
  );
}

interface PlotProps {
  title: string;
  labels: string[];
  /// Names of the points on the x axis, which counts from 1.
  names?: string[];
  x: number[];
  y: number[];
  low?: number[];
  high?: number[];
  xLabel: string;
  yLabel: string;
}

/// Points, with intervals if they are given.
function Plot({ title, labels, names, x, y, low, high, xLabel, yLabel }: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const key = JSON.stringify([x, y, low, high]);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const order = x.map((_, n) => n).sort((a, b) => x[a]! - x[b]!);
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "11px system-ui" };
    const whiskers = (u: uPlot) => {
      if (!low || !high) return;
      u.ctx.strokeStyle = colour("--accent");
      u.ctx.lineWidth = devicePixelRatio;
      for (const n of order) {
        const at = u.valToPos(x[n]!, "x", true);
        u.ctx.beginPath();
        u.ctx.moveTo(at, u.valToPos(low[n]!, "y", true));
        u.ctx.lineTo(at, u.valToPos(high[n]!, "y", true));
        u.ctx.stroke();
      }
    };
    const pad = (min: number, max: number): [number, number] => [min - Math.max((max - min) * 0.08, 0.02 * Math.abs(max) || 0.5), max + Math.max((max - min) * 0.08, 0.02 * Math.abs(max) || 0.5)];
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: 190,
        legend: { show: false },
        cursor: { drag: { x: false, y: false } },
        scales: { x: { time: false, range: (_, min, max) => pad(min ?? 0, max ?? 1) }, y: { range: (_, __, max) => (yLabel === "%" ? [0, 100] : [0, (max ?? 1) * 1.1 || 1]) } },
        axes: [{ ...axis, size: 30, values: names ? (_, ticks) => ticks.map((tick) => names[tick - 1] ?? "") : undefined, incrs: xLabel === "US dollars" || xLabel === "tokens" ? undefined : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], label: names ? undefined : xLabel, labelSize: 16, labelFont: "11px system-ui" }, { ...axis, size: 46 }],
        series: [{}, { stroke: "transparent", points: { show: true, size: 6, fill: colour("--accent"), stroke: colour("--accent") } }],
        hooks: { draw: [whiskers] },
      },
      [order.map((n) => x[n]!), order.map((n) => y[n]!)],
      element,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: 190 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [key]);
  const summary = labels.slice(0, 30).map((label, n) => `${label}: ${y[n]!.toFixed(1)} ${yLabel}`).join("; ");
  return <figure><figcaption>{title}</figcaption><div ref={box} class="plot" role="img" aria-label={`${title}. ${summary}`} /></figure>;
}
