// Benchmark jobs: a table, plots, the trials of a job, and what flipped between two jobs.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Job, JobDetail, Trial } from "./api";
import { get } from "./api";
import { count, dollars, percent, span } from "./format";
import { Ago, Meter, Problem, useInterval, useLoad } from "./parts";
import { setQuery, usePlace } from "./router";

export function Bench() {
  const { query } = usePlace();
  const [job, other] = [query.get("job") ?? "", query.get("with") ?? ""];
  const [jobs, error, reload] = useLoad((signal) => get<Job[]>("/api/bench/jobs", signal), []);
  const load = (name: string) => (signal: AbortSignal) => (name ? get<JobDetail>(`/api/bench/jobs/${encodeURIComponent(name)}`, signal) : Promise.resolve(undefined));
  const [detail, , again] = useLoad(load(job), [job]);
  const [second] = useLoad(load(other), [other]);
  useInterval(() => (reload(), again()), 5000);
  return (
    <main>
      <h1>Benchmarks</h1>
      {error !== undefined && <Problem error={error} />}
      {jobs && !jobs.length && <p class="empty">No jobs here. <code>fusee bench run SUITE -m MODEL --out bench/NAME</code> makes one.</p>}
      {jobs && jobs.length > 0 && (
        <>
          <table class="data">
            <thead><tr><th>job</th><th>models</th><th>flows</th><th class="num">trials</th><th class="num">passed</th><th class="num">95 % interval</th><th class="num">cost</th><th class="num">tokens</th><th>changed</th><th /></tr></thead>
            <tbody>
              {jobs.map((row) => (
                <tr key={row.job} class={row.job === job ? "focused" : ""}>
                  <td><a href={`/bench?job=${encodeURIComponent(row.job)}`}>{row.job.replaceAll("~", "/")}</a></td>
                  <td>{row.models.join(", ")}</td>
                  <td>{row.flows.join(", ")}</td>
                  <td class="num">{row.trials}</td>
                  <td class="num">{percent(row.pass_rate)}</td>
                  <td class="num">{percent(row.low)} to {percent(row.high)}</td>
                  <td class="num">{row.cost_usd === undefined ? "" : dollars(row.cost_usd)}</td>
                  <td class="num">{count(row.tokens)}</td>
                  <td><Ago ms={row.changed_ms} /></td>
                  <td>{job && row.job !== job && <button class="link" onClick={() => setQuery({ with: row.job }, false)}>compare</button>}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <div class="plots">
            <Plot title="Pass rate with 95 % interval" labels={jobs.map((row) => row.job)} names={jobs.map((row) => row.job.replace(/^.*~/, ""))} x={jobs.map((_, n) => n + 1)} y={jobs.map((row) => row.pass_rate * 100)} low={jobs.map((row) => row.low * 100)} high={jobs.map((row) => row.high * 100)} xLabel="job" yLabel="%" />
            <Plot title="Cost against pass rate" labels={jobs.map((row) => row.job)} x={jobs.map((row) => row.cost_usd ?? 0)} y={jobs.map((row) => row.pass_rate * 100)} xLabel="US dollars" yLabel="%" />
          </div>
        </>
      )}
      {detail && second && <Flips a={detail} b={second} />}
      {detail && <Trials detail={detail} />}
    </main>
  );
}

function Trials({ detail }: { detail: JobDetail }) {
  const causes = Object.entries(detail.causes);
  const trials = detail.results;
  return (
    <section>
      <h2>{detail.job.replaceAll("~", "/")} <span class="dim">{detail.passed} of {detail.graded} passed</span></h2>
      <div class="plots">
        <Plot title="Turns by trial" labels={trials.map((t) => t.case)} x={trials.map((_, n) => n + 1)} y={trials.map((t) => t.turns ?? 0)} xLabel="trial" yLabel="turns" />
        <Plot title="Tokens by trial" labels={trials.map((t) => t.case)} x={trials.map((_, n) => n + 1)} y={trials.map((t) => t.tokens ?? 0)} xLabel="trial" yLabel="tokens" />
      </div>
      {causes.length > 0 && (
        <figure class="causes"><figcaption>Failures by kind</figcaption>{causes.sort(([, a], [, b]) => b - a).map(([cause, n]) => <div key={cause}><span class="clip">{cause}</span><Meter value={n} of={Math.max(...causes.map(([, n]) => n))} label={`${cause}: ${n}`} /><span class="num">{n}</span></div>)}</figure>
      )}
      <table class="data">
        <thead><tr><th>case</th><th class="num">attempt</th><th>result</th><th>model</th><th>flow</th><th class="num">turns</th><th class="num">tokens</th><th class="num">cost</th><th class="num">time</th></tr></thead>
        <tbody>{trials.map((trial, n) => (
          <tr key={n}>
            <td>{trial.run ? <a href={`/runs/${trial.run}`}>{trial.case}</a> : trial.case}</td>
            <td class="num">{trial.attempt}</td>
            <td class={trial.passed ? "" : "failed"}>{trial.passed ? "passed" : (trial.cause ?? "failed")}</td>
            <td>{trial.model}</td>
            <td>{trial.flow ?? ""}</td>
            <td class="num">{trial.turns ?? ""}</td>
            <td class="num">{trial.tokens ? count(trial.tokens) : ""}</td>
            <td class="num">{trial.cost_usd ? dollars(trial.cost_usd) : ""}</td>
            <td class="num">{trial.seconds ? span(trial.seconds * 1000) : ""}</td>
          </tr>
        ))}</tbody>
      </table>
    </section>
  );
}

function Flips({ a, b }: { a: JobDetail; b: JobDetail }) {
  const key = (trial: Trial) => `${trial.case} ${trial.attempt}`;
  const others = new Map(b.results.map((trial) => [key(trial), trial]));
  const pairs = a.results.flatMap((trial) => (others.has(key(trial)) ? [[trial, others.get(key(trial))!] as const] : []));
  const flipped = pairs.filter(([one, two]) => one.passed !== two.passed);
  const link = (trial: Trial) => (trial.run ? <a href={`/runs/${trial.run}`}>{trial.passed ? "passed" : "failed"}</a> : <>{trial.passed ? "passed" : "failed"}</>);
  return (
    <section>
      <h2>Flipped <span class="dim">{flipped.length} of {pairs.length} pairs</span> <button class="link" onClick={() => setQuery({ with: undefined }, false)}>close</button></h2>
      <table class="data">
        <thead><tr><th>case</th><th>{a.job.replaceAll("~", "/")}</th><th>{b.job.replaceAll("~", "/")}</th><th /></tr></thead>
        <tbody>{flipped.map(([one, two]) => <tr key={key(one)}><td>{one.case}</td><td class={one.passed ? "" : "failed"}>{link(one)}</td><td class={two.passed ? "" : "failed"}>{link(two)}</td><td>{one.run && two.run && <a href={`/compare?a=${one.run}&b=${two.run}`}>compare</a>}</td></tr>)}</tbody>
      </table>
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
        axes: [{ ...axis, size: 30, values: names ? (_, ticks) => ticks.map((tick) => names[tick - 1] ?? "") : undefined, incrs: xLabel === "US dollars" ? undefined : [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], label: names ? undefined : xLabel, labelSize: 16, labelFont: "11px system-ui" }, { ...axis, size: 46 }],
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
