// Templates and workflows: what they take, their text, and a way to start them.
import type { NamedTask, Session } from "./api";
import { get } from "./api";
import { Code, Problem, useLoad } from "./parts";

export function Templates({ session }: { session: Session }) {
  const [tasks, error] = useLoad((signal) => get<NamedTask[]>("/api/templates", signal), []);
  return (
    <main>
      <h1>Templates and workflows</h1>
      {error !== undefined && <Problem error={error} />}
      {tasks?.map((task) => (
        <details key={task.name} class="task">
          <summary><b>{task.name}</b> <span class="dim">{task.kind}</span> <span class="clip">{task.description}</span></summary>
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
