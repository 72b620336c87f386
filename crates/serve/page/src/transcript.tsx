// The transcript: only the rows in view exist. Heights are estimated, then measured; what changes above the view does not
// move it.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Event } from "./api";
import { count, exact, gist, oneLine, plural, shortId, span } from "./format";
import { Markdown } from "./markdown";
import { Call, Code, Copy, Long } from "./parts";
import type { Rows } from "./store";
import type { TurnChoice } from "./turns";

const ESTIMATE = 30;
const CHUNK = 200;
const BEYOND = 600;

/// Heights of rows, summed by chunk so that a position is found without adding up all of them.
class Heights {
  private rows: number[] = [];
  private sums: number[] = [];

  get(n: number) {
    return this.rows[n] ?? ESTIMATE;
  }

  set(n: number, height: number): number {
    const by = height - this.get(n);
    if (by === 0) return 0;
    this.rows[n] = height;
    const chunk = Math.floor(n / CHUNK);
    this.sums[chunk] = (this.sums[chunk] ?? CHUNK * ESTIMATE) + by;
    return by;
  }

  /// Distance of a row from the top.
  top(n: number): number {
    const chunk = Math.floor(n / CHUNK);
    let top = 0;
    for (let c = 0; c < chunk; c++) top += this.sums[c] ?? CHUNK * ESTIMATE;
    for (let i = chunk * CHUNK; i < n; i++) top += this.get(i);
    return top;
  }

  /// Row at a distance from the top.
  row(top: number, rows: number): number {
    let n = 0;
    for (let c = 0; n + CHUNK < rows && top >= (this.sums[c] ?? CHUNK * ESTIMATE); c++) {
      top -= this.sums[c] ?? CHUNK * ESTIMATE;
      n += CHUNK;
    }
    while (n < rows - 1 && top >= this.get(n)) top -= this.get(n++);
    return n;
  }
}

export interface TranscriptHandle {
  show(row: number): void;
  toEnd(): void;
}

interface Props {
  rows: Rows;
  version: number;
  selected?: number;
  follow: boolean;
  setFollow: (yes: boolean) => void;
  tail?: string;
  call: (id: string) => Event | undefined;
  select: (seq: number) => void;
  /// Goes back to a turn; absent if nothing may be changed.
  turn?: (choice: TurnChoice) => void;
  handle: (handle: TranscriptHandle) => void;
}

export function Transcript({ rows, version, selected, follow, setFollow, tail, call, select, turn, handle }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const heights = useRef(new Heights());
  const [view, setView] = useState({ top: 0, height: 800 });
  const source = useRef(rows);
  const anchor = useRef<{ row: number; offset: number } | undefined>(undefined);
  if (source.current !== rows) {
    source.current = rows;
    heights.current = new Heights();
    anchor.current = undefined;
  }
  const sizes = heights.current;
  const total = rows.count;
  const first = Math.max(0, sizes.row(Math.max(0, view.top - BEYOND), total));
  const last = Math.min(total - 1, sizes.row(view.top + view.height + BEYOND, total));

  useEffect(() => {
    const element = box.current!;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (total) rows.need(first, last);
  }, [first, last, total, version, rows]);
  useEffect(() => {
    handle({
      show: (row) => {
        setFollow(false);
        anchor.current = { row, offset: 80 };
        box.current!.scrollTop = Math.max(0, heights.current.top(row) - 80);
      },
      toEnd: () => (box.current!.scrollTop = box.current!.scrollHeight),
    });
  }, []);
  // Measured after every render, before the browser paints.
  useLayoutEffect(() => {
    const element = box.current!;
    let moved = 0;
    const top = sizes.row(element.scrollTop, total);
    element.querySelectorAll<HTMLElement>("[data-row]").forEach((row) => {
      const n = Number(row.dataset.row);
      const by = sizes.set(n, row.offsetHeight);
      if (n < top) moved += by;
    });
    if (follow) element.scrollTop = element.scrollHeight;
    else if (anchor.current) {
      const to = Math.max(0, sizes.top(anchor.current.row) - anchor.current.offset);
      if (Math.abs(element.scrollTop - to) > 1) element.scrollTop = to;
    } else if (moved) element.scrollTop += moved;
  });

  const scrolled = () => {
    const element = box.current!;
    setView({ top: element.scrollTop, height: element.clientHeight });
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 8;
    if (atEnd && !follow && !anchor.current) setFollow(true);
  };
  // A person scrolls: the view is theirs.
  const taken = () => {
    anchor.current = undefined;
    if (follow) setFollow(false);
  };

  const shown = [];
  for (let n = first; n <= last; n++) {
    const event = rows.at(n);
    shown.push(
      <div key={n} data-row={n} data-seq={event?.seq} class={`row ${event && event.seq === selected ? "selected" : ""}`} style={event ? undefined : { height: `${sizes.get(n)}px` }}>
        {event ? <Row event={event} call={call} select={select} turn={turn} /> : null}
      </div>,
    );
  }
  return (
    <div class="transcript" ref={box} onScroll={scrolled} onWheel={taken} onTouchMove={taken} onPointerDown={taken} onKeyDown={(e) => /^(Arrow|Page|Home|End)/.test(e.key) && taken()} tabIndex={0} role="log" aria-label="Transcript" aria-live="off">
      <div style={{ height: `${sizes.top(first)}px` }} />
      {shown}
      <div style={{ height: `${Math.max(0, sizes.top(total) - sizes.top(last + 1))}px` }} />
      <div class={`tail ${tail ? "" : "none"}`}>{tail && <pre>{tail}</pre>}</div>
    </div>
  );
}

const Row = ({ event, call, select, turn }: { event: Event } & Pick<Props, "call" | "select" | "turn">) => {
  const [kind, head, body] = describe(event, call);
  const at = Date.parse(event.ts);
  return (
    <>
      <a class="seq" href={`?event=${event.seq}`} title={`event ${event.seq}, ${exact(at)}`} aria-label={`Event ${event.seq}`} onClick={(e) => (e.preventDefault(), select(event.seq))}>{event.seq}</a>
      <div class={`event ${kind}`}>
        <div class="head">
          {head}
          {turn && event.type === "turn_start" && event.task === "main" && (
            <span class="rowactions">
              <button class="link" title="Start again from before this turn" onClick={() => turn({ action: "rewind", turn: event.turn_index })}>rewind</button>
              <button class="link" title="Continue differently from before this turn" onClick={() => turn({ action: "fork", turn: event.turn_index })}>fork</button>
            </span>
          )}
          {event.task !== "main" && <span class="task">{event.task.replace(/^main\//, "")}</span>}
        </div>
        {body}
      </div>
    </>
  );
};

type Described = [kind: string, head: preact.ComponentChildren, body?: preact.ComponentChildren];

function describe(event: Event, call: (id: string) => Event | undefined): Described {
  switch (event.type) {
    case "task_started":
      return ["start", <b>Task</b>, <Markdown text={event.request} />];
    case "message":
      return event.role === "user" ? ["user", <b>You</b>, <Markdown text={event.text} />] : ["assistant", <><b>Model</b><Copy text={event.text} /></>, <Markdown text={event.text} />];
    case "reasoning":
      return ["reasoning", <Fold label={`Reasoning: ${oneLine(event.text, 120)}`}><Markdown text={event.text} /></Fold>];
    case "tool_call":
      return ["call", <><b>{event.name}</b> <span class="clip">{oneLine(gist(event.arguments))}</span></>, worthShowing(event.arguments) ? <Fold label="arguments" open={isChange(event)}><Call name={event.name} args={event.arguments} /></Fold> : undefined];
    case "tool_result": {
      const name = call(event.call_id)?.name ?? "result";
      const fate = event.fate ? ` ${event.fate}` : event.exit_code ? ` exit ${event.exit_code}` : "";
      const lines = event.content.split("\n").length;
      const label = <>{event.ok ? "✓" : "✗"} {name}{fate} <span class="dim">{span(event.duration_ms)}{event.truncated ? ", truncated" : ""}</span> <span class="clip dim">{oneLine(event.content, 120)}</span></>;
      return [`result ${event.ok ? "" : "failed"}`, <Fold label={label} open={!event.ok || (lines <= 6 && event.content.length < 500 && lines > 1)}><Long text={event.content} diff={/^(@@|diff --git)/m.test(event.content)} /></Fold>];
    }
    case "file_changed":
      return ["meta", <>{event.change} <code>{event.path}</code></>];
    case "turn_start":
      return ["turn", <>Turn {event.turn_index + 1}{event.max_turns ? ` of ${event.max_turns}` : ""} <span class="dim">{count(event.input_tokens)} tokens in</span></>];
    case "turn_complete":
      return ["meta", <>{count(event.output_tokens)} tokens out{event.cached_tokens ? `, ${count(event.cached_tokens)} cached` : ""}, {span(event.duration_ms)}{event.wait_ms !== undefined ? `, first after ${span(event.wait_ms)}` : ""}</>];
    case "compaction":
      return ["meta", <>Compaction: {count(event.tokens_before)} to {count(event.tokens_after)} tokens, {event.items_removed} messages</>];
    case "retry":
      return ["warn", <>Retry after {span(event.after_ms)}: {event.reason}</>];
    case "approval_requested":
      return ["ask", <><b>{event.name === "ask_user" ? "Question" : `Approval of ${event.name}`}</b> <span class="dim">{event.reason}</span></>, <Call name={event.name} args={event.arguments} />];
    case "approval_resolved":
      return [event.approved ? "meta" : "warn", <>{event.approved ? "Answered" : "Refused"}{event.reason ? `: ${event.reason}` : ""}</>];
    case "warning":
      return ["warn", <>{event.message} <span class="dim">{event.code}</span></>];
    case "error":
      return ["failed", <><b>{event.code}</b> {event.message}</>];
    case "log":
      return ["meta", event.message];
    case "stage_started":
      return ["stage", <b>{event.label}{event.attempt > 1 ? `, attempt ${event.attempt}` : ""}</b>];
    case "stage_complete":
      return ["meta", <>Stage {event.stage} {event.status}</>];
    case "flow_chosen":
      return ["meta", <>Flow <b>{event.flow}</b>: {event.reason}</>];
    case "files_located":
      return ["meta", <>Files for the request: {event.files.length ? "" : "none found"}</>, event.files.length || event.tests.length ? <ul class="plain">{event.files.map((file: { path: string; reason: string }) => <li key={file.path}><code>{file.path}</code> <span class="dim">{file.reason}</span></li>)}{event.tests.map((test: string) => <li key={test}><code>{test}</code> <span class="dim">test</span></li>)}</ul> : undefined];
    case "sample": {
      const facts = [event.passed !== undefined ? `${event.passed} tests passed, ${event.failed ?? 0} failed` : "", event.repairs ? `repairs answer ${event.repairs}` : "", `${count(event.tokens)} tokens`, span(event.duration_ms)].filter(Boolean).join(", ");
      return [event.verdict === "passed" ? "meta good" : "meta warn", <>Answer {event.n} <b>{event.verdict.replaceAll("_", " ")}</b> <span class="dim">{facts}</span>{event.reason ? `: ${oneLine(event.reason)}` : ""}</>];
    }
    case "hook": {
      const strict = ["deny", "block", "stop", "failed"].includes(event.decision);
      return [strict ? "warn" : "meta", <>Hook {event.event} <code>{oneLine(event.command, 80)}</code> <b>{event.decision === "none" ? "" : event.decision}</b> <span class="dim">{span(event.duration_ms)}</span>{event.reason ? `: ${event.reason}` : ""}</>];
    }
    case "network":
      return [event.verdict === "allowed" ? "meta" : "warn", <>Connection to <code>{event.host}:{event.port}</code> <b>{event.verdict}</b>{event.reason ? `: ${event.reason}` : ""}</>];
    case "rewound":
      return ["stage", <><b>{event.files && event.conversation ? "Begins as" : event.files ? "Files of" : "Conversation of"}</b> <a href={`/runs/${encodeURIComponent(event.from_run)}`}>{shortId(event.from_run)}</a> after {plural(event.turn, "turn")}</>];
    case "expansion":
      return ["meta", <>Opened {event.opened.map((key: string) => <code key={key}>{key}</code>)} <span class="dim">{event.reason}</span></>];
    case "phase_transition":
      return ["meta", <>Phase {event.from} to <b>{event.to}</b>: {event.reason}</>];
    case "phase_state":
      return ["meta", <>Phase {event.phase}</>];
    case "phase_probe_error":
      return ["warn", <>The phase could not be determined: {event.message}</>];
    case "flow_stage_report":
      return ["meta", <Fold label={<>Stage {event.label} {event.status} <span class="dim">{[event.attempts > 1 ? `${event.attempts} attempts` : "", event.files_read.length ? `${event.files_read.length} files read` : "", event.files_changed.length ? `${event.files_changed.length} changed` : ""].filter(Boolean).join(", ")}</span> <span class="clip">{oneLine(event.summary, 120)}</span></>}><Markdown text={event.summary} /></Fold>];
    case "task_resumed":
      return ["stage", <b>Resumed</b>];
    case "task_complete":
      return [
        `end ${event.status === "completed" ? "" : "failed"}`,
        <><b>{event.status === "completed" ? "Completed" : event.status}</b> <span class="dim">{plural(event.total_turns, "turn")}, {count(event.total_tokens)} tokens, {span(event.duration_ms)}{event.cost_usd ? `, $${event.cost_usd.toFixed(4)}` : ""}</span></>,
        event.error ? <p>{event.error.code}: {event.error.message}</p> : event.task === "main" ? undefined : <Fold label={`answer: ${oneLine(event.answer, 100)}`}><Markdown text={event.answer} /></Fold>,
      ];
    case "task_report":
      return ["meta", <Fold label={<>Report <span class="dim">{[plural(event.tool_calls_total, "call"), event.tool_errors_total ? `${event.tool_errors_total} failed` : "", event.files_changed.length ? `${plural(event.files_changed.length, "file")} changed` : "", event.verify ? `verification ${event.verify.passed ? "passed" : "failed"}` : ""].filter(Boolean).join(", ")}</span></>}><Code text={JSON.stringify(event, null, 2)} /></Fold>];
    case "gap":
      return ["meta", <>live fragments {event.from} to {event.to} were skipped</>];
    default: {
      const { seq: _s, ts: _t, run: _r, task: _k, type, ...rest } = event;
      return ["meta", <Fold label={<>{type.replaceAll("_", " ")} <span class="clip dim">{oneLine(JSON.stringify(rest), 140)}</span></>}><Code text={JSON.stringify(rest, null, 2)} /></Fold>];
    }
  }
}

const isChange = (event: Event) => ["edit_file", "apply_patch", "write_file"].includes(event.name);

/// Whether the arguments say more than the head does.
const worthShowing = (args: unknown) => {
  const text = JSON.stringify(args ?? {});
  return text.length > 2 && !(typeof args === "object" && args && Object.keys(args).length === 1 && gist(args).length < 140 && !gist(args).includes("\n"));
};

function Fold({ label, open: initial = false, children }: { label: preact.ComponentChildren; open?: boolean; children: preact.ComponentChildren }) {
  const [open, set] = useState(initial);
  return (
    <div class="fold">
      <button class="toggle" aria-expanded={open} onClick={() => set(!open)}>{label}</button>
      {open && children}
    </div>
  );
}
