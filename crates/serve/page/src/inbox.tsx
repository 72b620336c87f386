// The inbox: open questions first, then all runs by state.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Question, RunSummary, Session, State } from "./api";
import { get } from "./api";
import { count, dollars, plural, shortId, span } from "./format";
import { useKeys } from "./keys";
import { Ago, Badge, Problem, useInterval, useLoad } from "./parts";
import { decide, QuestionCard } from "./questions";
import { go, setQuery, usePlace } from "./router";

const GROUPS: [string, State[]][] = [
  ["Needs you", ["needs_you"]],
  ["Running", ["running"]],
  ["Interrupted", ["interrupted"]],
  ["Failed", ["failed"]],
  ["Done", ["completed", "cancelled"]],
];

export function Inbox({ session }: { session: Session }) {
  const { query } = usePlace();
  const text = (query.get("q") ?? "").toLowerCase();
  const project = query.get("project") ?? "";
  const limit = Number(query.get("limit") ?? 100);
  const [runs, error, reload] = useLoad((signal) => get<RunSummary[]>(`/api/runs?limit=${limit}`, signal), [limit]);
  const [questions, , reloadQuestions] = useLoad((signal) => get<Question[]>("/api/approvals", signal), []);
  const [at, setAt] = useState(-1);
  const [marked, setMarked] = useState<string[]>([]);
  const search = useRef<HTMLInputElement>(null);
  useInterval(() => (reload(), reloadQuestions()), 2000);

  const shown = (runs ?? []).filter(
    (run) => (!project || run.project === project) && (!text || `${run.title} ${run.run} ${run.model ?? ""}`.toLowerCase().includes(text)),
  );
  const groups = GROUPS.map(([name, states]) => [name, shown.filter((run) => states.includes(run.state))] as const).filter(([, list]) => list.length);
  const flat = groups.flatMap(([, list]) => list);
  const waiting = questions ?? [];
  const move = (by: number) => {
    const next = Math.max(0, Math.min(flat.length - 1, at + by));
    setAt(next);
    document.querySelector(`[data-run="${CSS.escape(flat[next]?.run ?? "")}"]`)?.scrollIntoView({ block: "nearest" });
  };
  const mark = (run: string) => setMarked((old) => (old.includes(run) ? old.filter((other) => other !== run) : [...old.slice(-1), run]));
  const first = waiting.find((question) => question.kind === "approval");
  const answer = (decision: "allow" | "deny") =>
    first && !session.read_only && decide(first, decision).catch(() => {}).then(() => (reload(), reloadQuestions()));
  useKeys([
    { keys: "j or ArrowDown", what: "Next run", act: () => move(1) },
    { keys: "k or ArrowUp", what: "Previous run", act: () => move(-1) },
    { keys: "Enter or o", what: "Open the run", act: () => flat[at] && go(`/runs/${flat[at]!.run}`) },
    { keys: "x", what: "Mark the run for a comparison", act: () => flat[at] && mark(flat[at]!.run) },
    { keys: "c", what: "Compare the two marked runs", act: () => marked.length === 2 && go(`/compare?a=${marked[0]}&b=${marked[1]}`) },
    { keys: "y", what: "Allow the first question", act: () => void answer("allow") },
    { keys: "n", what: "Deny the first question", act: () => void answer("deny") },
    { keys: "/", what: "Search", act: () => search.current?.focus() },
  ]);
  useEffect(() => setAt(-1), [text, project]);

  return (
    <main>
      <h1 class="sr">Inbox</h1>
      {waiting.length > 0 && (
        <section aria-label="Questions">
          <h2>{waiting.length === 1 ? "1 question" : `${waiting.length} questions`} for you</h2>
          {waiting.map((question) => (
            <QuestionCard key={question.run + question.id} question={question} readOnly={session.read_only} focused={question === first} done={() => (reload(), reloadQuestions())} />
          ))}
        </section>
      )}
      <div class="toolbar">
        <input ref={search} type="search" value={query.get("q") ?? ""} placeholder="Search runs  /" aria-label="Search runs" onInput={(e) => setQuery({ q: e.currentTarget.value })} />
        {session.projects.length > 1 && (
          <select value={project} aria-label="Project" onChange={(e) => setQuery({ project: e.currentTarget.value })}>
            <option value="">all projects</option>
            {session.projects.map((path) => <option value={path}>{path.split("/").pop()}</option>)}
          </select>
        )}
        <span class="grow" />
        {marked.length > 0 && (
          <button disabled={marked.length !== 2} onClick={() => go(`/compare?a=${marked[0]}&b=${marked[1]}`)}>Compare {marked.length} of 2</button>
        )}
      </div>
      {error !== undefined && <Problem error={error} />}
      {runs && !flat.length && (
        <p class="empty">{text || project ? "No run matches." : <>No runs yet. <a href="/start">Start one</a>, or type <code>fusee run</code> in a terminal.</>}</p>
      )}
      {groups.map(([name, list]) => (
        <section key={name}>
          <h2>{name} <span class="dim">{list.length}</span></h2>
          <ul class="runs">
            {list.map((run) => (
              <li key={run.project + run.run} data-run={run.run} class={flat[at] === run ? "focused" : ""}>
                <input type="checkbox" checked={marked.includes(run.run)} onChange={() => mark(run.run)} aria-label={`Mark ${run.title} for a comparison`} />
                <Badge state={run.state} />
                <a href={`/runs/${run.run}`} class="title clip" title={run.run}>{run.title || shortId(run.run)}</a>
                <span class="dim clip wide">{run.error ?? run.model ?? ""}</span>
                <span class="num wide" title="turns">{run.turns ? plural(run.turns, "turn") : ""}</span>
                <span class="num wide" title="tokens">{run.tokens ? count(run.tokens) : ""}</span>
                <span class="num wide" title="cost">{run.cost_usd ? dollars(run.cost_usd) : ""}</span>
                <span class="num wide" title="duration">{run.ended_ms ? span(run.ended_ms - run.started_ms) : ""}</span>
                <span class="num"><Ago ms={run.started_ms} /></span>
              </li>
            ))}
          </ul>
        </section>
      ))}
      {runs && runs.length >= limit && limit < 1000 && <button onClick={() => setQuery({ limit: String(Math.min(1000, limit * 3)) })}>Show more</button>}
    </main>
  );
}
