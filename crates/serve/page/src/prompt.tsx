// What a model receives in this project, section by section, and the templates and workflows that can be started by name.
import type { NamedTask, Section, Session } from "./api";
import { get } from "./api";
import { count } from "./format";
import { Code, Meter, Problem, useLoad } from "./parts";
import { setQuery, usePlace } from "./router";

export function Prompt({ session }: { session: Session }) {
  const { query } = usePlace();
  const project = query.get("project") ?? "";
  const [prompt, promptError] = useLoad((signal) => get<{ sections: Section[] }>(`/api/prompt${project ? `?project=${encodeURIComponent(project)}` : ""}`, signal), [project]);
  const [tasks, error] = useLoad((signal) => get<NamedTask[]>("/api/templates", signal), []);
  const total = (prompt?.sections ?? []).reduce((sum, section) => sum + section.tokens, 0);
  return (
    <main>
      <h1>Prompt</h1>
      <p class="dim">What the model of a request receives here, before the request and the definitions of tools: {count(total)} tokens. Files in <code>.fusee/prompts</code>, <code>.fusee/skills</code> and <code>AGENTS.md</code> change it.</p>
      {session.projects.length > 1 && (
        <div class="toolbar">
          <select value={project} aria-label="Project" onChange={(e) => setQuery({ project: e.currentTarget.value })}>
            {session.projects.map((path, n) => <option key={path} value={n ? path : ""}>{path}</option>)}
          </select>
        </div>
      )}
      {promptError !== undefined && <Problem error={promptError} />}
      <Sections sections={prompt?.sections ?? []} />
      <h2>Templates and workflows</h2>
      {error !== undefined && <Problem error={error} />}
      {tasks?.map((task) => (
        <details key={task.name} class="task">
          <summary><b class="clip">{task.name}</b> <span class="dim">{task.kind}</span> <span class="clip wide">{task.description}</span></summary>
          <p class="narrow">{task.description}</p>
          {task.inputs.length > 0 && (
            <table class="data" tabIndex={0}>
              <thead><tr><th>input</th><th>type</th><th>default</th><th>description</th></tr></thead>
              <tbody>{task.inputs.map((input) => <tr key={input.name}><td>{input.name}{input.required && <span class="warn"> *</span>}</td><td>{input.type}</td><td><code>{input.default === undefined ? "" : JSON.stringify(input.default)}</code></td><td>{input.description}</td></tr>)}</tbody>
            </table>
          )}
          {!session.read_only && <p><a class="button" href={`/start?task=${encodeURIComponent(task.name)}`}>Start</a></p>}
          <Code text={task.text} />
        </details>
      ))}
    </main>
  );
}

/// Sections of a prompt with their share of its tokens.
export function Sections({ sections }: { sections: Section[] }) {
  const total = sections.reduce((sum, section) => sum + section.tokens, 0);
  return (
    <div class="sections">
      {sections.map((section, n) => (
        <details key={n}>
          <summary><span class="name">{section.title || "(before the first heading)"}</span> <Meter value={section.tokens} of={total} label={`${section.title}: ${section.tokens} of ${total} tokens`} /> <span class="dim">{count(section.tokens)}</span></summary>
          <Code text={section.text} />
        </details>
      ))}
    </div>
  );
}
