// Keyboard shortcuts. A page registers its keys while it is shown; `?` lists them.
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

export interface Shortcut {
  keys: string;
  what: string;
  act: () => void;
}

const registered = new Set<Shortcut[]>();
let first = "";
let timer = 0;
let showHelp: (() => void) | undefined;

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && isTyping(event.target)) {
    (event.target as HTMLElement).blur();
    return;
  }
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (event.key === "?") {
    event.preventDefault();
    showHelp?.();
    return;
  }
  const pressed = first ? `${first} ${event.key}` : event.key;
  const all = [...registered].flat().reverse();
  const found = all.find((shortcut) => shortcut.keys.split(" or ").includes(pressed));
  first = "";
  clearTimeout(timer);
  if (found) {
    event.preventDefault();
    found.act();
  } else if (all.some((shortcut) => shortcut.keys.startsWith(`${event.key} `))) {
    first = event.key;
    timer = window.setTimeout(() => (first = ""), 1000);
  }
});

export function useKeys(shortcuts: Shortcut[]) {
  // Before the next key: what it does depends on what the last one did.
  useLayoutEffect(() => {
    registered.add(shortcuts);
    return () => void registered.delete(shortcuts);
  });
}

export function KeyHelp() {
  const [open, set] = useState(false);
  useEffect(() => {
    showHelp = () => set(true);
  }, []);
  if (!open) return null;
  const close = () => set(false);
  return (
    <dialog class="keys" ref={(dialog) => void (dialog && !dialog.open && dialog.showModal())} onClose={close} onClick={(e) => e.target === e.currentTarget && close()}>
      <h2>Keys</h2>
      <dl>
        {[...registered].flat().map((shortcut) => (
          <div key={shortcut.keys}>
            <dt>{shortcut.keys.split(" or ").map((key, n) => [n ? " or " : "", ...key.split(" ").map((k) => <kbd>{k}</kbd>)])}</dt>
            <dd>{shortcut.what}</dd>
          </div>
        ))}
        <div>
          <dt><kbd>?</kbd></dt>
          <dd>Show the keys</dd>
        </div>
      </dl>
      <button onClick={close} autofocus>Close</button>
    </dialog>
  );
}
