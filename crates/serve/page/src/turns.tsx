// Going back to a turn of a run, or forking it there: a dialog that shows what would change before anything does.
import { useEffect, useState } from "preact/hooks";
import { post, runPath } from "./api";
import { Problem } from "./parts";
import { go } from "./router";

export interface TurnChoice {
  action: "rewind" | "fork";
  /// Number of completed turns that are kept.
  turn: number;
}

interface RewindPlan {
  run?: string;
  files: string[];
  aside: string[];
  left: { path: string; reason: string }[];
  commands: string[];
}

export function TurnDialog({ run, choice, turns, close }: { run: string; choice: TurnChoice; turns: number; close: () => void }) {
  const [turn, setTurn] = useState(choice.turn);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const rewind = choice.action === "rewind";
  const act = async (work: () => Promise<string | undefined>) => {
    setBusy(true);
    setError(undefined);
    try {
      const next = await work();
      close();
      if (next) go(`/runs/${next}`);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <dialog class="turns" ref={(dialog) => void (dialog && !dialog.open && dialog.showModal())} onClose={close} aria-label={rewind ? "Rewind" : "Fork"}>
      <h2>{rewind ? "Rewind" : "Fork"}</h2>
      <p class="dim">{rewind ? "A new run begins as this one did, up to the turn, and can be continued or resumed." : "A new run takes over the beginning of this one and goes on from there."} This run is kept.</p>
      <label class="inline">Turns to keep <input type="number" min={0} max={turns} value={turn} onInput={(e) => setTurn(Math.max(0, Math.min(turns, Number(e.currentTarget.value) || 0)))} /> <span class="dim">of {turns}</span></label>
      {error !== undefined && <Problem error={error} />}
      {rewind ? <Rewind run={run} turn={turn} busy={busy} act={act} close={close} /> : <Fork run={run} turn={turn} busy={busy} act={act} close={close} />}
    </dialog>
  );
}

interface PartProps {
  run: string;
  turn: number;
  busy: boolean;
  act: (work: () => Promise<string | undefined>) => Promise<void>;
  close: () => void;
}

function Rewind({ run, turn, busy, act, close }: PartProps) {
  const [files, setFiles] = useState(true);
  const [conversation, setConversation] = useState(true);
  const [plan, setPlan] = useState<RewindPlan>();
  const [error, setError] = useState<unknown>();
  const body = { turn, files, conversation };
  useEffect(() => {
    let gone = false;
    setPlan(undefined);
    setError(undefined);
    if (files || conversation) {
      post<RewindPlan>(runPath(run, "/rewind"), { ...body, dry_run: true }).then(
        (plan) => !gone && setPlan(plan),
        (problem) => !gone && setError(problem),
      );
    }
    return () => void (gone = true);
  }, [run, turn, files, conversation]);
  return (
    <>
      <label class="inline"><input type="checkbox" checked={files} onChange={(e) => setFiles(e.currentTarget.checked)} /> files</label>{" "}
      <label class="inline"><input type="checkbox" checked={conversation} onChange={(e) => setConversation(e.currentTarget.checked)} /> conversation</label>
      {error !== undefined && <Problem error={error} />}
      <div class="plan">
        {plan && files && !plan.files.length && <p class="dim">No file changes.</p>}
        <Paths title="Files that go back" paths={plan?.files} />
        <Paths title="Set aside, because they changed since" paths={plan?.aside} />
        <Paths title="Cannot be restored" paths={plan?.left.map((file) => `${file.path}: ${file.reason}`)} />
        <Paths title="Commands whose further effects stay" paths={plan?.commands} />
      </div>
      <div class="actions">
        <button class="primary" disabled={busy || !plan} onClick={() => act(async () => (await post<RewindPlan>(runPath(run, "/rewind"), body)).run)}>Rewind</button>
        <button onClick={close}>Close</button>
      </div>
    </>
  );
}

function Fork({ run, turn, busy, act, close }: PartProps) {
  const [message, setMessage] = useState("");
  const [model, setModel] = useState("");
  const [worktree, setWorktree] = useState(false);
  const start = async () => {
    const text = message.trim() || undefined;
    const { run: next } = await post<{ run: string }>(runPath(run, "/fork"), { turn, message: text, model: text && model.trim() ? model.trim() : undefined, worktree });
    return next;
  };
  return (
    <form onSubmit={(e) => (e.preventDefault(), void act(start))}>
      <label>Message <span class="dim">(without one, the fork repeats the next turn)</span><textarea rows={3} value={message} onInput={(e) => setMessage(e.currentTarget.value)} /></label>
      <label>Model <input value={model} disabled={!message.trim()} onInput={(e) => setModel(e.currentTarget.value)} placeholder="the same" /></label>
      <label class="inline"><input type="checkbox" checked={worktree} onChange={(e) => setWorktree(e.currentTarget.checked)} /> in a copy of the project</label>
      <div class="actions"><button class="primary" disabled={busy}>Fork</button><button type="button" onClick={close}>Close</button></div>
    </form>
  );
}

const Paths = ({ title, paths }: { title: string; paths?: string[] }) =>
  paths?.length ? <><h3>{title}</h3><ul>{paths.slice(0, 50).map((path) => <li key={path}><code>{path}</code></li>)}{paths.length > 50 && <li>and {paths.length - 50} more</li>}</ul></> : null;
