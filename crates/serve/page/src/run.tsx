// The page of a run: timeline, transcript, questions and actions.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Context, Event, Program, RunDetail, Session, Timeline as TimelineData } from "./api";
import { follow as followRun, get, post, Refused, runPath } from "./api";
import { count, dollars, oneLine, percent, plural, shortId, span } from "./format";
import { useKeys } from "./keys";
import { Ago, Badge, Code, Copy, Meter, Problem, useInterval, useLoad } from "./parts";
import { decide, QuestionCard } from "./questions";
import { go, setQuery, usePlace } from "./router";
import { Log, Matches } from "./store";
import { Timeline } from "./timeline";
import type { TranscriptHandle } from "./transcript";
import { Transcript } from "./transcript";
import { Sections } from "./prompt";
import type { TurnChoice } from "./turns";
import { TurnDialog } from "./turns";
import { Markdown } from "./markdown";

const KINDS: [string, string][] = [["", "everything"], ["failed", "failed"], ["edits", "edits"], ["commands", "commands"], ["messages", "messages"]];
const EXPORTS: [string, string, string][] = [["markdown", "Markdown", "to read"], ["events", "Events", "JSON Lines"], ["cassette", "Cassette", "replies, to replay"], ["atif", "ATIF", "trajectory of Harbor"]];
const TABS = ["transcript", "answer", "context", "program"] as const;

export function RunPage({ run, session }: { run: string; session: Session }) {
  const { query } = usePlace();
  const kind = query.get("kind") ?? "";
  const text = query.get("text") ?? "";
  const task = query.get("task") ?? "";
  const selected = Number(query.get("event")) || undefined;
  const tab = (TABS as readonly string[]).includes(query.get("tab") ?? "") ? query.get("tab")! : "transcript";
  const [version, bump] = useState(0);
  const [detail, setDetail] = useState<RunDetail>();
  const [timeline, setTimeline] = useState<TimelineData>();
  const [error, setError] = useState<unknown>();
  const [notice, setNotice] = useState("");
  const [connected, setConnected] = useState(true);
  const [paused, setPaused] = useState(false);
  const [follow, setFollow] = useState(!selected);
  const [tail, setTail] = useState("");
  const [message, setMessage] = useState("");
  const [choice, setChoice] = useState<TurnChoice>();
  const pausedRef = useRef(false);
  const held = useRef<Event[]>([]);
  const transcript = useRef<TranscriptHandle | undefined>(undefined);
  const search = useRef<HTMLInputElement>(null);
  const box = useRef<HTMLTextAreaElement>(null);
  pausedRef.current = paused;

  // One render per frame, however many events arrive.
  const frame = useRef(0);
  const changed = useMemo(() => () => void (frame.current ||= requestAnimationFrame(() => ((frame.current = 0), bump((n) => n + 1)))), []);
  const log = useMemo(() => new Log(run, changed), [run]);
  const matches = useMemo(() => {
    if (!kind && !text && !task) return undefined;
    const wanted = new URLSearchParams();
    if (kind) wanted.set("kind", kind);
    if (text) wanted.set("text", text);
    if (task) wanted.set("task", task);
    return new Matches(run, wanted.toString(), changed);
  }, [run, kind, text, task]);

  const refresh = useMemo(() => {
    let timer = 0;
    let again = false;
    const load = async () => {
      try {
        const [shown, spans] = await Promise.all([get<RunDetail>(runPath(run)), get<TimelineData>(runPath(run, "/timeline"))]);
        setDetail(shown);
        setTimeline(spans);
        setError(undefined);
      } catch (problem) {
        if (problem instanceof Refused) setError(problem);
      }
      // At most once a second, however many events arrive.
      timer = window.setTimeout(() => {
        timer = 0;
        if (again) {
          again = false;
          refresh();
        }
      }, 1000);
    };
    const refresh = () => {
      if (timer) again = true;
      else {
        timer = -1;
        void load();
      }
    };
    return refresh;
  }, [run]);

  const take = (event: Event) => {
    if (event.type === "message_delta" || event.type === "reasoning_delta" || event.type === "tool_output") {
      setTail((old) => (old + event.text).slice(-4000));
      log.last = Math.max(log.last, event.seq);
      return;
    }
    if (event.type === "gap") {
      log.last = Math.max(log.last, event.to);
      return;
    }
    if (/^(message|reasoning|tool_result|turn_complete|task_complete)$/.test(event.type)) setTail("");
    if (!log.append(event)) return;
    matches?.refresh();
    refresh();
    changed();
  };
  const takeRef = useRef(take);
  takeRef.current = take;

  useEffect(() => {
    let stop: (() => void) | undefined;
    let gone = false;
    setDetail(undefined);
    setTimeline(undefined);
    setError(undefined);
    setTail("");
    refresh();
    log
      .open()
      .then(() => {
        if (gone) return;
        stop = followRun(run, () => log.last + 1, {
          event: (event) => (pausedRef.current ? void held.current.push(event) : takeRef.current(event)),
          connected: (yes) => {
            setConnected(yes);
            if (yes) refresh();
          },
          end: () => (setTail(""), refresh()),
        });
        if (selected) void show(selected);
        else if (query.get("at") === "start") setFollow(false);
      })
      .catch(setError);
    return () => {
      gone = true;
      stop?.();
      held.current = [];
    };
  }, [run]);

  const show = async (seq: number) => {
    setFollow(false);
    setQuery({ event: String(seq), kind: undefined, text: undefined, task: undefined, tab: undefined });
    const row = await log.find(seq);
    // Two frames: the list may have to be there first.
    requestAnimationFrame(() => requestAnimationFrame(() => transcript.current?.show(row)));
  };
  const unpause = () => {
    setPaused(false);
    pausedRef.current = false;
    held.current.splice(0).forEach((event) => take(event));
  };
  const act = async (work: Promise<unknown>, done = "") => {
    setNotice("");
    try {
      await work;
      setNotice(done);
    } catch (problem) {
      setNotice((problem as Error).message);
    }
    refresh();
  };
  const send = async () => {
    if (!message.trim()) return;
    try {
      const { run: next } = await post<{ run: string }>(runPath(run, "/message"), { text: message });
      setMessage("");
      if (next !== run) go(`/runs/${next}`);
      else setFollow(true);
    } catch (problem) {
      setNotice((problem as Error).message);
    }
  };
  const undo = async () => {
    const plan = await post<{ files: string[]; left: { path: string; reason: string }[] }>(runPath(run, "/undo?dry_run=true"));
    if (!plan.files.length) return setNotice("there is nothing to undo");
    const files = plan.files.slice(0, 20).join("\n") + (plan.files.length > 20 ? `\nand ${plan.files.length - 20} more` : "");
    if (confirm(`Undo the changes of this run?\n\n${files}`)) await act(post(runPath(run, "/undo")), `undone: ${plan.files.length} files`);
  };
  const step = async (by: number) => {
    const now = selected ? await log.find(selected) : by > 0 ? -1 : log.count;
    const next = Math.max(0, Math.min(log.count - 1, now + by));
    log.need(next, next);
    const event = log.at(next) ?? (await log.find(log.starts[Math.floor(next / 200)] ?? 0), log.at(next));
    if (event) void show(event.seq);
  };
  // What is going on grows, and a run of another process may end without an event.
  useInterval(() => !detail?.ended_ms && connected && refresh(), 2000);
  const first = detail?.open_questions.find((question) => question.kind === "approval");
  const writable = !session.read_only;
  useKeys([
    { keys: "j", what: "Next event", act: () => void step(1) },
    { keys: "k", what: "Previous event", act: () => void step(-1) },
    { keys: "f", what: "Follow the newest event", act: () => (setQuery({ event: undefined }), setFollow(true)) },
    { keys: "p", what: "Pause and continue live updates", act: () => (paused ? unpause() : setPaused(true)) },
    { keys: "/", what: "Search in the run", act: () => search.current?.focus() },
    { keys: "m", what: "Write a message", act: () => box.current?.focus() },
    { keys: "y", what: "Allow", act: () => first && writable && void act(decide(first, "allow")) },
    { keys: "n", what: "Deny", act: () => first && writable && void act(decide(first, "deny")) },
    { keys: "s", what: "Stop the turn", act: () => detail?.working && writable && void act(post(runPath(run, "/stop"))) },
    { keys: "1", what: "Transcript", act: () => setQuery({ tab: undefined }, false) },
    { keys: "2", what: "Answer", act: () => setQuery({ tab: "answer" }, false) },
    { keys: "3", what: "Context", act: () => setQuery({ tab: "context" }, false) },
    { keys: "4", what: "Program", act: () => setQuery({ tab: "program" }, false) },
  ]);
  useEffect(() => {
    document.title = `${detail?.open_questions.length ? "● " : ""}${detail?.title || shortId(run)} · fusee`;
  }, [detail, run]);

  if (error instanceof Refused && error.status === 404) return <main><Problem error={error} /><p><a href="/">All runs</a></p></main>;
  const totals = detail?.totals;
  const running = detail && !detail.ended_ms;
  const rows = matches ?? log;
  return (
    <main class="run">
      <header class="runhead">
        <h1 class="clip" title={detail?.start?.request}>{detail?.title ?? shortId(run)}</h1>
        <div class="facts">
          {detail && <Badge state={detail.state} />}
          <span title={run}>{shortId(run)} <Copy text={run} what="Copy the run's id" /></span>
          {detail?.model && <span class="clip model" title={detail.model}>{detail.model}</span>}
          {detail && <Ago ms={detail.started_ms} />}
          {timeline && <span title="duration">{span(detail?.ended_ms ? detail.ended_ms - detail.started_ms : timeline.length_ms)}</span>}
          {totals && <span title="turns">{plural(totals.turns, "turn")}</span>}
          {totals && <span title={`${totals.cached_tokens} from the cache`}>{count(totals.tokens)} tokens</span>}
          {totals?.cost_usd !== undefined && <span>{dollars(totals.cost_usd)}</span>}
          {totals?.context_limit ? <span>context {count(totals.context_tokens)} <Meter value={totals.context_tokens} of={totals.context_limit} label={`${count(totals.context_tokens)} of ${count(totals.context_limit)} tokens`} limit /></span> : null}
          {detail?.start?.continues && <a href={`/runs/${detail.start.continues}`}>continues {shortId(detail.start.continues)}</a>}
          {detail?.start?.rewound && <a href={`/runs/${detail.start.rewound.run}`}>from turn {detail.start.rewound.turn} of {shortId(detail.start.rewound.run)}</a>}
          {!connected && <span class="warn" role="status">reconnecting…</span>}
        </div>
        <div class="actions">
          {writable && detail?.working && <button onClick={() => act(post(runPath(run, "/stop")))} title="Stop the turn; the run asks how to go on (s)">Stop turn</button>}
          {writable && detail?.working && <button onClick={() => confirm("Cancel this run?") && act(post(runPath(run, "/cancel")))}>Cancel</button>}
          {writable && running && !detail.working && <button class="primary" onClick={() => act(post(runPath(run, "/resume")))}>Resume</button>}
          {writable && detail?.ended_ms && totals!.files.length > 0 && <button onClick={() => void undo().catch((problem) => setNotice(problem.message))}>Undo changes</button>}
          {writable && detail && !detail.working && totals!.turns > 0 && <button onClick={() => setChoice({ action: "rewind", turn: Math.max(0, totals!.turns - 1) })}>Rewind</button>}
          {writable && detail && totals!.turns > 0 && <button onClick={() => setChoice({ action: "fork", turn: totals!.turns })}>Fork</button>}
          <a class="button" href={`/compare?a=${run}`}>Compare</a>
          <details class="menu">
            <summary class="button">Export</summary>
            <ul>{EXPORTS.map(([format, name, what]) => <li key={format}><a href={runPath(run, `/export?format=${format}`)} download>{name} <span class="dim">{what}</span></a></li>)}</ul>
          </details>
          {notice && <span class="notice" role="status">{notice}</span>}
        </div>
      </header>
      {error !== undefined && <Problem error={error} />}
      <div class="timebox">{timeline && <Timeline data={timeline} open={(seq) => void show(seq)} />}</div>
      {detail?.open_questions.map((question) => (
        <QuestionCard key={question.id} question={question} readOnly={!writable} focused={question === first} inRun done={refresh} />
      ))}
      <nav class="tabs" aria-label="Parts of the run">
        {TABS.filter((name) => name !== "answer" || detail?.end).map((name) => (
          <a key={name} href={`?tab=${name}`} aria-current={tab === name ? "page" : undefined} onClick={(e) => (e.preventDefault(), setQuery({ tab: name === "transcript" ? undefined : name }, false))}>{name}</a>
        ))}
        <span class="grow" />
        {tab === "transcript" && (
          <>
            <select value={kind || (task ? "" : "")} onChange={(e) => setQuery({ kind: e.currentTarget.value, event: undefined })} aria-label="Show">
              {KINDS.map(([value, label]) => <option key={value} value={value} selected={kind === value}>{label}</option>)}
              {Object.keys(totals?.tools ?? {}).map((tool) => <option key={tool} value={`tool:${tool}`} selected={kind === `tool:${tool}`}>{tool}</option>)}
            </select>
            {(timeline?.lanes.length ?? 0) > 1 && (
              <select value={task} onChange={(e) => setQuery({ task: e.currentTarget.value, event: undefined })} aria-label="Task">
                <option value="">all tasks</option>
                {timeline!.lanes.map((lane) => <option key={lane.task} value={lane.task}>{lane.task}</option>)}
              </select>
            )}
            <input ref={search} type="search" value={text} placeholder="Search  /" aria-label="Search in the run" onChange={(e) => setQuery({ text: e.currentTarget.value, event: undefined })} />
            {running && <button aria-pressed={paused} onClick={() => (paused ? unpause() : setPaused(true))}>{paused ? "Continue" : "Pause"}</button>}
            <button aria-pressed={follow} onClick={() => (setQuery({ event: undefined }), setFollow(!follow))}>Follow</button>
          </>
        )}
      </nav>
      {tab === "transcript" && (
        <Transcript
          rows={rows}
          version={version}
          selected={selected}
          follow={follow && !matches}
          setFollow={setFollow}
          tail={tail}
          call={(id) => log.call(id)}
          select={(seq) => void show(seq)}
          turn={writable && detail && !detail.working ? setChoice : undefined}
          handle={(handle) => (transcript.current = handle)}
        />
      )}
      {tab === "transcript" && matches?.complete && !matches.count && <p class="empty">No event matches.</p>}
      {tab === "answer" && detail?.end && (
        <section class="panel">{detail.end.error && <p class="problem">{detail.end.error}</p>}<Markdown text={detail.end.answer} /><Files files={totals!.files} /></section>
      )}
      {tab === "context" && <ContextPanel run={run} />}
      {tab === "program" && <ProgramPanel run={run} timeline={timeline} open={(seq) => void show(seq)} />}
      {writable && detail && (detail.working || detail.ended_ms || detail.start?.rewound) && (
        <form class="composer" onSubmit={(e) => (e.preventDefault(), void send())}>
          <textarea
            ref={box}
            rows={1}
            value={message}
            aria-label="Message"
            placeholder={detail.ended_ms ? "Continue the conversation  m" : "Message to the model: stops the turn  m"}
            onInput={(e) => setMessage(e.currentTarget.value)}
            onKeyDown={(e) => e.key === "Enter" && !e.shiftKey && !e.isComposing && (e.preventDefault(), void send())}
          />
          <button class="primary" disabled={!message.trim()}>Send</button>
        </form>
      )}
      {choice && <TurnDialog run={run} choice={choice} turns={totals?.turns ?? 0} close={() => setChoice(undefined)} />}
    </main>
  );
}

const Files = ({ files }: { files: string[] }) =>
  files.length ? <><h3>Files changed</h3><ul class="files">{files.map((file) => <li key={file}><code>{file}</code></li>)}</ul></> : null;

function ContextPanel({ run }: { run: string }) {
  const [context, error] = useLoad((signal) => get<Context>(runPath(run, "/context"), signal), [run]);
  if (error !== undefined) return <Problem error={error} />;
  if (!context) return <section class="panel" aria-busy="true" />;
  const total = context.shares.reduce((sum, share) => sum + share.tokens, 0);
  return (
    <section class="panel">
      <h2>What fills the context</h2>
      {context.problem && <p class="dim">{context.problem}</p>}
      <table class="data" tabIndex={0}>
        <thead><tr><th>content</th><th class="num">items</th><th class="num">tokens</th><th class="num">share</th><th /></tr></thead>
        <tbody>{context.shares.map((share) => (
          <tr key={share.kind}><td>{share.kind}</td><td class="num">{share.items}</td><td class="num">{count(share.tokens)}</td><td class="num">{percent(share.tokens / Math.max(1, total))}</td><td><Meter value={share.tokens} of={total} label={share.kind} /></td></tr>
        ))}</tbody>
      </table>
      <h2>Prompt</h2>
      <Sections sections={context.sections} />
      <h2>Tools</h2>
      <p>{context.tools.map((tool) => <code key={tool} class="chip">{tool}</code>)}</p>
    </section>
  );
}

interface ProgramCall {
  label: string;
  status: string;
  ms: number;
  cost?: number;
  answer: string;
  seq?: number;
}

/// The lines of a program that call the tasks of a run. The journal knows tasks by position, not by line: a task is found by
/// the instructions it was given.
function callsByLine(text: string, timeline?: TimelineData): ProgramCall[][] {
  const lines = text.split("\n");
  const calls = lines.map(() => [] as ProgramCall[]);
  const atoms = [...text.matchAll(/\(defatom\s+([^\s()]+)[\s\S]*?\(instructions\s+"((?:[^"\\]|\\.)*)"/g)].map(([, name, words]) => {
    const pattern = words!.split(/\{\{[^}]*\}\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return { name: name!, is: new RegExp("^" + pattern.join("[\\s\\S]*")) };
  });
  const seen = new Map<string, number>();
  for (const [n, lane] of (timeline?.lanes ?? []).entries()) {
    const atom = lane.task === "main" ? undefined : atoms.find((atom) => atom.is.test(lane.label));
    if (!atom) continue;
    const places = lines.flatMap((line, at) => (line.includes(`(${atom.name} `) || line.includes(`(${atom.name})`) ? [at] : []));
    const nth = seen.get(atom.name) ?? 0;
    seen.set(atom.name, nth + 1);
    const at = places[Math.min(nth, places.length - 1)];
    const first = timeline!.spans.find((span) => span.lane === n);
    if (at !== undefined) calls[at]!.push({ label: lane.task.replace(/^main\//, ""), status: lane.status ?? "running", ms: (lane.end ?? timeline!.length_ms) - lane.start, cost: lane.cost_usd, answer: lane.answer ?? "", seq: first?.seq });
  }
  return calls;
}

/// The text of a program, with the tasks that ran beside the lines that call them.
function ProgramPanel({ run, timeline, open }: { run: string; timeline?: TimelineData; open: (seq: number) => void }) {
  const [program, error] = useLoad((signal) => get<Program>(runPath(run, "/program"), signal), [run]);
  if (error !== undefined) return <Problem error={error} />;
  if (!program) return <section class="panel" aria-busy="true" />;
  const calls = callsByLine(program.text, timeline);
  return (
    <section class="panel">
      <h2>{program.kind} {program.name} <Copy text={program.text} /></h2>
      {Object.keys(program.inputs).length > 0 && <Code text={JSON.stringify(program.inputs, null, 2)} />}
      <table class="program"><tbody>{program.text.trimEnd().split("\n").map((line, n) => (
        <tr key={n}><td class="num dim">{n + 1}</td><td><pre>{line || " "}</pre></td><td>{calls[n]!.slice(0, 12).map((call) => <button key={call.label} class={`call ${call.status}`} title={`${call.label} ${call.status}: ${call.answer}`} onClick={() => call.seq && open(call.seq)}>{call.status === "completed" ? "✓" : call.status === "running" ? "…" : "✗"} {call.answer ? oneLine(call.answer, 28) : call.label} <span class="dim">{span(call.ms)}{call.cost ? ` ${dollars(call.cost)}` : ""}</span></button>)}{calls[n]!.length > 12 && <span class="dim">and {calls[n]!.length - 12} more</span>}</td></tr>
      ))}</tbody></table>
    </section>
  );
}
