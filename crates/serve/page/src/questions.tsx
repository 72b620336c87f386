// Open questions: what is asked, what confines it, and one key to answer.
import { useState } from "preact/hooks";
import type { Question } from "./api";
import { post, Refused, runPath } from "./api";
import { shortId } from "./format";
import { Ago, Call, Problem } from "./parts";

export async function decide(question: Question, decision: "allow" | "deny", scope?: string, reason?: string) {
  await post(runPath(question.run, `/approve?project=${encodeURIComponent(question.project)}`), { id: question.id, decision, scope, reason });
}

export async function reply(question: Question, text: string) {
  await post(runPath(question.run, `/answer?project=${encodeURIComponent(question.project)}`), { id: question.id, text });
}

export function QuestionCard(props: { question: Question; readOnly: boolean; focused?: boolean; inRun?: boolean; done: () => void }) {
  const { question, readOnly, focused, inRun, done } = props;
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [text, setText] = useState("");
  const act = async (work: Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await work;
    } catch (problem) {
      // Answered elsewhere: the list will say so.
      setError(problem);
      if (!(problem instanceof Refused && problem.status === 409)) {
        setBusy(false);
        return;
      }
    }
    setTimeout(done, error ? 1500 : 0);
    setBusy(false);
  };
  const sandbox = question.sandbox && question.sandbox !== "off" ? `confined by ${question.sandbox}` : "not confined by a sandbox";
  return (
    <article class={`question ${focused ? "focused" : ""}`} data-question={question.id} aria-label={`${question.tool} needs an answer`}>
      <header>
        <strong>{question.kind === "approval" ? question.tool : question.kind === "stopped" ? "Turn stopped" : "Question"}</strong>
        <span class="dim">{question.reason}</span>
        <span class="grow" />
        {!inRun && <a href={`/runs/${question.run}`} class="clip">{question.title || shortId(question.run)}</a>}
        <Ago ms={question.asked_ms} />
      </header>
      <Call name={question.tool} args={question.arguments} />
      {question.kind === "approval" && question.arguments && "command" in question.arguments && <p class={question.sandbox && question.sandbox !== "off" ? "dim" : "warn"}>{sandbox}</p>}
      {!question.working && <p class="dim">Nobody works on this run now; the answer is used when it is resumed.</p>}
      {error !== undefined && <Problem error={error} />}
      {readOnly ? (
        <p class="dim">This server is read-only.</p>
      ) : question.kind === "approval" ? (
        <div class="actions">
          <button class="primary" disabled={busy} onClick={() => act(decide(question, "allow"))}>Allow {focused && <kbd>y</kbd>}</button>
          <button disabled={busy} onClick={() => act(decide(question, "allow", "session"))} title="Until the run ends">Allow in this run</button>
          <button disabled={busy} onClick={() => act(decide(question, "deny", undefined, text.trim() || undefined))}>Deny {focused && <kbd>n</kbd>}</button>
          <input class="grow" value={text} onInput={(e) => setText(e.currentTarget.value)} placeholder="reason for a refusal (optional)" aria-label="Reason for a refusal" />
        </div>
      ) : (
        <form class="actions" onSubmit={(e) => (e.preventDefault(), act(reply(question, text)))}>
          <input class="grow" value={text} onInput={(e) => setText(e.currentTarget.value)} aria-label="Answer" placeholder={question.kind === "stopped" ? "message, or nothing to continue" : "answer"} />
          <button class="primary" disabled={busy}>{question.kind === "stopped" && !text ? "Continue" : "Send"}</button>
        </form>
      )}
    </article>
  );
}
