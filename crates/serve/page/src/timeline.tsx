// The timeline: one lane per task, spans to scale. Drag to zoom, click a span to see its event.
import { useRef, useState } from "preact/hooks";
import type { Span, Timeline as Data } from "./api";
import { span as duration } from "./format";

const ROW = 18;
const NAMES: Record<Span["kind"], string> = { model: "model", output: "output", tool: "tools", retry: "retries", user: "waiting for you", compaction: "compaction", stage: "stages", hook: "hooks", network: "connections" };

export function Timeline({ data, open }: { data: Data; open: (seq: number) => void }) {
  const [range, setRange] = useState<[number, number] | undefined>();
  const [drag, setDrag] = useState<[number, number] | undefined>();
  const box = useRef<SVGSVGElement>(null);
  const length = Math.max(1, data.length_ms);
  const [from, to] = range ?? [0, length];
  const width = Math.max(1, to - from);
  const x = (ms: number) => ((ms - from) / width) * 100;
  const lanes = data.lanes.length ? data.lanes : [{ task: "main", label: "", start: 0 }];
  const height = lanes.length * ROW + 2;
  const used = [...new Set(data.spans.map((span) => span.kind))];
  const visible = data.spans.filter((span) => span.end >= from && span.start <= to);
  const position = (event: PointerEvent) => {
    const rect = box.current!.getBoundingClientRect();
    return from + Math.max(0, Math.min(1, (event.clientX - rect.left) / rect.width)) * width;
  };
  const ticks = niceTicks(from, to);
  const bands = visible.filter((span) => span.kind === "stage");
  const bars = visible.filter((span) => span.kind !== "stage");
  const busy = (kind: Span["kind"]) => duration(data.spans.filter((s) => s.kind === kind).reduce((sum, s) => sum + s.end - s.start, 0));
  return (
    <section class="timeline" aria-label="Timeline">
      <div class="legend">
        {used.map((kind) => <span key={kind}><i class={kind} />{NAMES[kind]} <span class="dim">{kind === "compaction" || kind === "network" ? "" : busy(kind)}</span></span>)}
        {data.spans.some((span) => span.failed) && <span><i class="failed" />failed</span>}
        <span class="grow" />
        {range && <button class="link" onClick={() => setRange(undefined)}>whole run</button>}
        <span class="dim">{duration(width)}</span>
      </div>
      <div class="lanes" tabIndex={0} role="group" aria-label={`Timeline of ${lanes.length} tasks over ${duration(length)}`}>
        {lanes.length > 1 && (
          <ol class="names" aria-hidden="true">{lanes.map((lane) => <li key={lane.task} title={`${lane.task}: ${lane.label}`}>{lane.task.replace(/^main\//, "") || "main"}</li>)}</ol>
        )}
        <svg
          ref={box}
          height={height}
          role="img"
          aria-label={`${data.spans.length} spans over ${duration(length)}`}
          onPointerDown={(e) => {
            const at = position(e);
            setDrag([at, at]);
          }}
          onPointerMove={(e) => drag && setDrag([drag[0], position(e)])}
          onPointerUp={(e) => {
            if (!drag) return;
            const [a, b] = [Math.min(drag[0], position(e)), Math.max(drag[0], position(e))];
            setDrag(undefined);
            if (b - a > width * 0.01) setRange([a, b]);
          }}
          onPointerLeave={() => setDrag(undefined)}
          onDblClick={() => setRange(undefined)}
        >
          {ticks.map((tick) => <line key={tick} x1={`${x(tick)}%`} x2={`${x(tick)}%`} y1={0} y2={height} class="tick" />)}
          {bands.map((span) => (
            <g key={`s${span.seq}`} onClick={() => open(span.seq)}>
              <rect x={`${x(span.start)}%`} width={`${Math.max(0, x(span.end) - x(span.start))}%`} y={span.lane * ROW + 1} height={ROW - 2} class="stage"><title>{`${span.label}: ${duration(span.end - span.start)}`}</title></rect>
              <text x={`${Math.max(0, x(span.start))}%`} dx={3} y={span.lane * ROW + 12} class="label">{span.label}</text>
            </g>
          ))}
          {bars.map((span) => (
            <rect
              key={`${span.kind}${span.seq}`}
              x={`${x(span.start)}%`}
              // A rectangle without width is not drawn at all.
              style={{ width: `max(2px, ${Math.max(0, x(span.end) - x(span.start))}%)` }}
              y={span.lane * ROW + (span.kind === "tool" ? 5 : 3)}
              height={span.kind === "tool" ? 8 : 12}
              class={`${span.kind} ${span.failed ? "failed" : ""}`}
              onClick={() => open(span.seq)}
            >
              <title>{`${span.label}${(span.count ?? 1) > 1 ? ` and ${span.count! - 1} more` : ""}: ${duration(span.end - span.start)}${span.failed ? ", failed" : ""}`}</title>
            </rect>
          ))}
          {drag && <rect class="brush" x={`${x(Math.min(...drag))}%`} width={`${Math.abs(x(drag[1]) - x(drag[0]))}%`} y={0} height={height} />}
        </svg>
      </div>
      <div class={`axis ${lanes.length > 1 ? "named" : ""}`} aria-hidden="true">{ticks.map((tick) => <span key={tick} style={{ left: `${x(tick)}%` }}>{duration(tick)}</span>)}</div>
    </section>
  );
}

/// Round times that divide a range into about six parts.
function niceTicks(from: number, to: number): number[] {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5, 864e5];
  const step = steps.find((step) => (to - from) / step <= 6) ?? 864e5 * Math.ceil((to - from) / 864e5 / 6);
  const ticks = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to - step / 4; tick += step) ticks.push(tick);
  return ticks;
}
