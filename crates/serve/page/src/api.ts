// The server's answers, and how they are fetched. schema/openapi.json describes them.

export type State = "needs_you" | "running" | "interrupted" | "completed" | "failed" | "cancelled";

export interface RunSummary {
  run: string;
  project: string;
  title: string;
  state: State;
  started_ms: number;
  ended_ms?: number;
  questions: number;
  model?: string;
  turns: number;
  tokens: number;
  cost_usd?: number;
  error?: string;
}

export interface Question {
  run: string;
  project: string;
  title: string;
  id: string;
  kind: "approval" | "question" | "stopped";
  tool: string;
  task: string;
  arguments: Record<string, unknown>;
  reason: string;
  sandbox: string;
  asked_ms: number;
  seq: number;
  working: boolean;
}

export interface ToolTotals {
  calls: number;
  errors: number;
  ms: number;
}

export interface Totals {
  turns: number;
  tokens: number;
  cached_tokens: number;
  cost_usd?: number;
  context_tokens: number;
  context_limit?: number;
  model_ms: number;
  output_ms: number;
  tool_ms: number;
  user_ms: number;
  retry_ms: number;
  retries: number;
  compactions: number;
  tools: Record<string, ToolTotals>;
  files: string[];
}

export interface RunEnd {
  status: string;
  answer: string;
  error?: string;
}

export interface RunDetail extends RunSummary {
  start?: { request: string; model: string; sandbox: string; continues?: string; rewound?: { run: string; turn: number } };
  end?: RunEnd;
  totals: Totals;
  open_questions: Question[];
  here: boolean;
  working: boolean;
  seq: number;
}

export type Event = { seq: number; ts: string; run: string; task: string; type: string } & Record<string, any>;

export interface Span {
  lane: number;
  kind: "model" | "output" | "tool" | "retry" | "user" | "compaction" | "stage" | "hook" | "network";
  start: number;
  end: number;
  seq: number;
  label: string;
  failed?: boolean;
  count?: number;
}

export interface Lane {
  task: string;
  label: string;
  start: number;
  end?: number;
  status?: string;
  answer?: string;
  tokens?: number;
  cost_usd?: number;
}

export interface Timeline {
  started_ms: number;
  length_ms: number;
  seq: number;
  lanes: Lane[];
  spans: Span[];
}

export interface Index {
  count: number;
  last: number;
  every: number;
  starts: number[];
}

export interface TaskInput {
  name: string;
  type: "any" | "string" | "number" | "boolean" | "array" | "object";
  required: boolean;
  default?: unknown;
  description?: string;
}

export interface NamedTask {
  name: string;
  kind: "template" | "workflow";
  description: string;
  inputs: TaskInput[];
  text: string;
}

export interface Session {
  version: string;
  directory: string;
  projects: string[];
  read_only: boolean;
}

export interface Action {
  seq: number;
  name: string;
  text: string;
  ok?: boolean;
  ms?: number;
}

export interface Side {
  run: string;
  title: string;
  model: string;
  took_ms?: number;
  totals: Totals;
  end?: RunEnd;
}

export interface Comparison {
  a: Side;
  b: Side;
  actions: { a?: Action; b?: Action; same: boolean }[];
  first_difference?: number;
  settings: { name: string; a: unknown; b: unknown }[];
  prompt_diff: string;
  only_a: string[];
  only_b: string[];
}

export interface Section {
  title: string;
  text: string;
  tokens: number;
}

export interface Plan {
  model: string;
  context_tokens?: number;
  approve: string;
  sandbox: string;
  flow?: string;
  verify?: string;
  limits: { max_turns?: number; max_tokens?: number; timeout_s?: number; budget_usd?: number };
  prompt: Section[];
  prompt_tokens: number;
  prompt_usd?: number;
  calls: string;
}

export interface Context {
  sections: Section[];
  tools: string[];
  shares: { kind: string; items: number; tokens: number }[];
  problem?: string;
}

export interface Program {
  kind: "request" | "template" | "workflow";
  name: string;
  text: string;
  inputs: Record<string, unknown>;
}

export interface Trial {
  case: string;
  attempt: number;
  tries: number;
  passed: boolean;
  graded: boolean;
  cause?: string;
  message?: string;
  model: string;
  flow: string;
  language?: string;
  turns: number;
  tokens: number;
  cost_usd?: number;
  seconds: number;
  run: string;
}

export interface Job {
  job: string;
  changed_ms: number;
  running: boolean;
  planned?: number;
  models: string[];
  flows: string[];
  trials: number;
  graded: number;
  passed: number;
  pass_rate: number;
  low: number;
  high: number;
  cost_usd?: number;
  tokens: number;
  causes: Record<string, number>;
  tool_errors: Record<string, number>;
}

export interface JobDetail extends Job {
  results: Trial[];
  languages: { language: string; graded: number; passed: number; low: number; high: number }[];
  flaky: string[];
}

/// Two jobs, paired by case and attempt. Rates are from 0 to 1.
export interface BenchComparison {
  cases: number;
  a: number;
  b: number;
  difference: number;
  low: number;
  high: number;
  p: number;
  test: string;
  points: number;
  needed?: number | null;
  attempts: number;
  flipped: { case: string; a: boolean | number; b: boolean | number; a_runs: string[]; b_runs: string[] }[];
  flaky: string[];
  unpaired: number;
}

/// What the server said is wrong.
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly help?: string,
    readonly fields: Record<string, string> = {},
  ) {
    super(message);
  }
}

/// Called when the server no longer knows us.
let onSignedOut: () => void = () => {};
export const whenSignedOut = (then: () => void) => (onSignedOut = then);

export async function refusal(response: Response): Promise<Refused> {
  if (response.status === 401) onSignedOut();
  const body = await response.json().catch(() => ({}));
  const error = body.error ?? {};
  return new Refused(response.status, error.message ?? `the server answered ${response.status}`, error.help, error.fields);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, { signal });
  if (!response.ok) throw await refusal(response);
  return response.json();
}

/// A page of events, and the number from which the next one starts.
export async function page(path: string, signal?: AbortSignal): Promise<[Event[], number | undefined]> {
  const response = await fetch(path, { signal });
  if (!response.ok) throw await refusal(response);
  const next = response.headers.get("fusee-next");
  return [await response.json(), next ? Number(next) : undefined];
}

export async function post<T>(path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { "idempotency-key": crypto.randomUUID() };
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(path, { method: "POST", headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (!response.ok) throw await refusal(response);
  return response.status === 204 ? (undefined as T) : response.json();
}

export const runPath = (run: string, rest = "") => `/api/runs/${encodeURIComponent(run)}${rest}`;

/// Follows the events of a run, and reconnects where it broke off. Every event is delivered once.
export function follow(
  run: string,
  from: () => number,
  handlers: { event: (event: Event) => void; connected: (yes: boolean) => void; end: () => void },
): () => void {
  const stop = new AbortController();
  const wait = (ms: number) => new Promise((done) => setTimeout(done, ms));
  const read = async () => {
    let delay = 500;
    while (!stop.signal.aborted) {
      try {
        const response = await fetch(runPath(run, `/stream?from=${from()}`), { signal: stop.signal });
        if (response.status === 401 || response.status === 404) throw await refusal(response);
        if (!response.ok || !response.body) throw new Error(String(response.status));
        handlers.connected(true);
        delay = 500;
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (;;) {
          const { value, done } = await reader.read();
          if (done) break;
          const parts = (rest + value).split("\n\n");
          rest = parts.pop() ?? "";
          for (const part of parts) {
            let type = "message";
            let data = "";
            for (const line of part.split("\n")) {
              if (line.startsWith("event: ")) type = line.slice(7);
              else if (line.startsWith("data: ")) data = line.slice(6);
            }
            if (type === "end") {
              handlers.end();
              return;
            }
            if (type === "message" && data) handlers.event(JSON.parse(data));
          }
        }
      } catch (error) {
        if (stop.signal.aborted || (error instanceof Refused && error.status !== 503)) return;
      }
      handlers.connected(false);
      await wait(delay);
      delay = Math.min(delay * 2, 5000);
    }
  };
  void read();
  return () => stop.abort();
}
