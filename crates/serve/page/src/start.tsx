// Starting a run: words, a template or a workflow, with a form made from its typed inputs.
import { useEffect, useRef, useState } from "preact/hooks";
import type { NamedTask, Plan, Session, TaskInput } from "./api";
import { get, post, Refused } from "./api";
import { count, dollars, span } from "./format";
import { useKeys } from "./keys";
import { Code, Problem, useLoad } from "./parts";
import { Sections } from "./prompt";
import { go, setQuery, usePlace } from "./router";

const FLOWS = ["", "auto", "flat", "direct", "staged", "staged3", "branched"];

export function Start({ session }: { session: Session }) {
  const { query } = usePlace();
  const name = query.get("task") ?? "";
  const [tasks, error] = useLoad((signal) => get<NamedTask[]>("/api/templates", signal), []);
  const task = tasks?.find((task) => task.name === name);
  const [request, setRequest] = useState("");
  const [values, setValues] = useState<Record<string, string>>({});
  const [options, setOptions] = useState<Record<string, string>>({});
  const [wrong, setWrong] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [plan, setPlan] = useState<Plan | Refused>();
  const area = useRef<HTMLTextAreaElement>(null);
  useKeys([{ keys: "e", what: "Edit the request", act: () => area.current?.focus() }]);

  const set = (field: string) => (event: { currentTarget: { value: string } }) => setOptions({ ...options, [field]: event.currentTarget.value });
  /// What is asked for, and what is wrong with it.
  const wanted = (): [body: object, fields: Record<string, string>] => {
    const fields: Record<string, string> = {};
    const inputs: Record<string, unknown> = {};
    for (const input of task?.inputs ?? []) {
      const value = read(input, values[input.name] ?? "", fields);
      if (value !== undefined) inputs[input.name] = value;
    }
    const limits: Record<string, number> = {};
    for (const limit of ["max_turns", "max_tokens", "timeout_s", "budget_usd"]) {
      const text = options[limit]?.trim();
      if (!text) continue;
      if (Number(text) > 0) limits[limit] = Number(text);
      else fields[limit] = "this must be a positive number";
    }
    const extra = Object.fromEntries(["model", "flow", "verify", "approve"].flatMap((key) => (options[key]?.trim() ? [[key, options[key]!.trim()]] : [])));
    const work = task ? { [task.kind]: task.name, inputs } : request.trimStart().startsWith("(") ? { workflow: request } : { request };
    return [{ ...work, ...extra, limits }, fields];
  };
  const [body, fields] = wanted();
  const key = JSON.stringify(body);
  const ready = !!tasks && (task ? true : !name && !!request.trim()) && !Object.keys(fields).length;
  // The plan follows the form, once typing has paused.
  useEffect(() => {
    setPlan((old) => (ready ? old : undefined));
    if (!ready) return;
    let gone = false;
    const timer = setTimeout(() => {
      post<Plan>("/api/plan", body).then(
        (plan) => !gone && setPlan(plan),
        (error) => !gone && error instanceof Refused && setPlan(error),
      );
    }, 500);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [key, ready]);
  const submit = async (event: Event) => {
    event.preventDefault();
    setWrong({});
    setProblem(undefined);
    if (Object.keys(fields).length) return setWrong(fields);
    setBusy(true);
    try {
      const { run } = await post<{ run: string }>("/api/runs", body);
      go(`/runs/${run}`);
    } catch (error) {
      if (error instanceof Refused && Object.keys(error.fields).length) setWrong(error.fields);
      else setProblem(error);
      setBusy(false);
    }
  };

  if (session.read_only) return <main><p class="empty">This server is read-only: nothing can be started.</p></main>;
  return (
    <main class="start">
      <h1>Start a run</h1>
      <p class="dim">in <code>{session.directory}</code></p>
      <form onSubmit={submit} noValidate>
        <label>
          <span>What</span>
          <select value={name} onChange={(e) => (setValues({}), setWrong({}), setQuery({ task: e.currentTarget.value }, false))}>
            <option value="">a request in words, or a program in parentheses</option>
            {(["template", "workflow"] as const).map((kind) => (
              <optgroup key={kind} label={kind + "s"}>{(tasks ?? []).filter((task) => task.kind === kind).map((task) => <option key={task.name} value={task.name}>{task.name}</option>)}</optgroup>
            ))}
          </select>
        </label>
        {error !== undefined && <Problem error={error} />}
        {task?.description && <p class="dim">{task.description}</p>}
        {!task && (
          <label>
            <span>Request</span>
            <textarea ref={area} rows={5} value={request} onInput={(e) => setRequest(e.currentTarget.value)} onKeyDown={(e) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && e.currentTarget.form!.requestSubmit()} />
          </label>
        )}
        {task?.inputs.map((input) => <Field key={input.name} input={input} value={values[input.name] ?? ""} wrong={wrong[input.name]} set={(value) => setValues({ ...values, [input.name]: value })} />)}
        {Object.entries(wrong).filter(([name]) => !task?.inputs.some((input) => input.name === name) && !(name in LIMITS)).map(([name, why]) => <p class="problem" key={name}>{name}: {why}</p>)}
        <details open={["model", "flow", "verify", "approve", ...Object.keys(LIMITS)].some((key) => options[key] || wrong[key])}>
          <summary>Model, flow and limits</summary>
          <div class="grid">
            <label><span>Model</span><input value={options.model ?? ""} onInput={set("model")} placeholder="as configured" /></label>
            <label><span>Flow</span><select value={options.flow ?? ""} onChange={set("flow")}>{FLOWS.map((flow) => <option key={flow} value={flow}>{flow || "as configured"}</option>)}</select></label>
            <label><span>Approvals</span><select value={options.approve ?? ""} onChange={set("approve")}>{["", "auto", "ask", "never"].map((mode) => <option key={mode} value={mode}>{mode || "as configured"}</option>)}</select></label>
            <label><span>Verify with</span><input value={options.verify ?? ""} onInput={set("verify")} placeholder="command" /></label>
            {Object.entries(LIMITS).map(([field, label]) => (
              <label key={field}><span>{label}</span><input inputMode="decimal" value={options[field] ?? ""} onInput={set(field)} aria-invalid={!!wrong[field]} placeholder="as configured" />{wrong[field] && <span class="problem" role="alert">{wrong[field]}</span>}</label>
            ))}
          </div>
        </details>
        {problem !== undefined && <Problem error={problem} />}
        <div class="actions"><button class="primary" disabled={busy || (!task && !request.trim())}>Start</button><span class="dim">{!task && "ctrl-enter"}</span></div>
      </form>
      <PlanPanel plan={plan} />
      {task && <details><summary>{task.kind} text</summary><Code text={task.text} /></details>}
    </main>
  );
}

/// What the run would do, before anything is spent.
function PlanPanel({ plan }: { plan?: Plan | Refused }) {
  if (!plan) return <section class="planned" aria-label="Plan" />;
  if (plan instanceof Refused) return <section class="planned" aria-label="Plan"><h2>Plan</h2><p class="dim">{Object.entries(plan.fields).map(([name, why]) => `${name}: ${why}`).join("; ") || plan.message}{plan.help ? ` (${plan.help})` : ""}</p></section>;
  const { limits } = plan;
  const facts: [string, string][] = [
    ["model", plan.model ? `${plan.model}${plan.context_tokens ? `, ${count(plan.context_tokens)} tokens of context` : ""}` : "none is needed"],
    ["flow", plan.flow ?? "its own"],
    ["approvals", plan.approve],
    ["commands", plan.sandbox === "on" ? "confined" : "not confined"],
    ["verify with", plan.verify ?? ""],
    ["at most", [limits.max_turns && `${limits.max_turns} turns`, limits.max_tokens && `${count(limits.max_tokens)} tokens of context`, limits.timeout_s && span(limits.timeout_s * 1000), limits.budget_usd && dollars(limits.budget_usd)].filter(Boolean).join(", ")],
    ["first request", plan.prompt.length ? `${count(plan.prompt_tokens)} tokens without the definitions of tools${plan.prompt_usd ? `, ${dollars(plan.prompt_usd)}` : ""}` : ""],
  ];
  return (
    <section class="planned" aria-label="Plan">
      <h2>Plan <span class="dim">nothing has been spent</span></h2>
      <table class="data"><tbody>{facts.filter(([, value]) => value).map(([name, value]) => <tr key={name}><th>{name}</th><td>{value}</td></tr>)}</tbody></table>
      {plan.calls && <Code text={plan.calls} />}
      <Sections sections={plan.prompt} />
    </section>
  );
}

const LIMITS: Record<string, string> = { max_turns: "Turns at most", max_tokens: "Tokens at most", timeout_s: "Seconds at most", budget_usd: "Dollars at most" };

function Field({ input, value, wrong, set }: { input: TaskInput; value: string; wrong?: string; set: (value: string) => void }) {
  const id = `input-${input.name}`;
  const shared = { id, "aria-invalid": !!wrong, "aria-describedby": `${id}-note`, name: input.name };
  const hint = input.default !== undefined ? `default: ${typeof input.default === "string" ? input.default : JSON.stringify(input.default)}` : "";
  return (
    <div class={`field ${wrong ? "wrong" : ""}`}>
      <label for={id}>{input.name}{input.required && <span title="required" class="warn"> *</span>} <span class="dim">{input.type === "any" ? "" : input.type}</span></label>
      {input.type === "boolean" ? (
        <select {...shared} value={value} onChange={(e) => set(e.currentTarget.value)}><option value="">{hint || "not given"}</option><option value="true">true</option><option value="false">false</option></select>
      ) : input.type === "number" ? (
        <input {...shared} inputMode="decimal" value={value} placeholder={hint} onInput={(e) => set(e.currentTarget.value)} />
      ) : (
        <textarea {...shared} rows={input.type === "array" || input.type === "object" ? 3 : 1} value={value} placeholder={hint || (input.type === "array" ? '["…"]' : input.type === "object" ? '{"…": "…"}' : "")} onInput={(e) => set(e.currentTarget.value)} />
      )}
      <span id={`${id}-note`} class={wrong ? "problem" : "dim"} role={wrong ? "alert" : undefined}>{wrong ?? input.description ?? ""}</span>
    </div>
  );
}

/// The value of a field. What the server would refuse as JSON is said here; everything else is for it to judge.
function read(input: TaskInput, text: string, wrong: Record<string, string>): unknown {
  if (!text.trim()) return undefined;
  if (input.type === "any" || input.type === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    if (input.type === "array" || input.type === "object") {
      wrong[input.name] = `this is not JSON of type ${input.type}`;
      return undefined;
    }
    return text;
  }
}
