// Signs in with the token of the printed URL, then shows the page that the address names.
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Question, Session } from "./api";
import { get, post, Refused, whenSignedOut } from "./api";
import { Bench } from "./bench";
import { Compare } from "./compare";
import { oneLine } from "./format";
import { Inbox } from "./inbox";
import { KeyHelp, useKeys } from "./keys";
import { useInterval } from "./parts";
import { go, usePlace } from "./router";
import { RunPage } from "./run";
import { Start } from "./start";
import "./style.css";
import { Prompt } from "./prompt";

const PAGES: [path: string, name: string, key: string][] = [
  ["/", "Inbox", "i"],
  ["/start", "Start", "s"],
  ["/compare", "Compare", "c"],
  ["/prompt", "Prompt", "p"],
  ["/bench", "Benchmarks", "b"],
];

const THEMES = ["auto", "light", "dark"] as const;

function App() {
  const { path } = usePlace();
  const [session, setSession] = useState<Session>();
  const [problem, setProblem] = useState<Refused | "offline">();
  const [waiting, setWaiting] = useState(0);
  const [theme, setTheme] = useState(localStorage.getItem("theme") ?? "auto");
  const known = useRef(new Set<string>());

  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
  }, [theme]);
  const open = async () => {
    try {
      const token = new URLSearchParams(location.hash.slice(1)).get("token");
      if (token) {
        // The token must not stay in the address, where it would be copied along.
        history.replaceState(null, "", location.pathname + location.search);
        await post("/api/session", { token });
      }
      setSession(await get<Session>("/api/session"));
      setProblem(undefined);
    } catch (error) {
      setProblem(error instanceof Refused ? error : "offline");
    }
  };
  useEffect(() => {
    whenSignedOut(() => setProblem(new Refused(401, "This page is not signed in", "open the URL that fusee printed")));
    void open();
    // The printed URL may be opened in a tab that shows the page already.
    const changed = () => void open();
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);

  const look = async () => {
    if (!session) return;
    try {
      const questions = await get<Question[]>("/api/approvals");
      setWaiting(questions.length);
      if (problem === "offline") setProblem(undefined);
      for (const question of questions) {
        const key = `${question.run} ${question.id}`;
        if (known.current.has(key)) continue;
        known.current.add(key);
        if (document.hidden && "Notification" in window && Notification.permission === "granted") {
          const note = new Notification("fusee needs you", { body: `${question.tool}: ${oneLine(question.title, 80)}`, tag: key });
          note.onclick = () => (focus(), go(`/runs/${question.run}`));
        }
      }
    } catch (error) {
      if (!(error instanceof Refused)) setProblem("offline");
    }
  };
  useEffect(() => {
    if (!session) return;
    void look();
    // Also while hidden: that is when a notification is wanted.
    const timer = setInterval(look, 3000);
    return () => clearInterval(timer);
  }, [session, problem]);
  useInterval(() => problem === "offline" && !session && void open(), 2000);
  useEffect(() => {
    if (!path.startsWith("/runs/")) document.title = `${waiting ? `(${waiting}) ` : ""}${PAGES.find(([page]) => page === path)?.[1] ?? "fusee"} · fusee`;
  }, [path, waiting]);
  useKeys(PAGES.map(([page, name, key]) => ({ keys: `g ${key}`, what: name, act: () => go(page) })));

  const run = /^\/runs\/([A-Za-z0-9._-]{1,64})$/.exec(path)?.[1];
  return (
    <>
      <a class="skip" href="#content" onClick={(e) => (e.preventDefault(), document.querySelector<HTMLElement>("main")?.focus())}>Skip to the content</a>
      <nav class="top" aria-label="Pages">
        <a href="/" class="brand">fusee</a>
        {PAGES.map(([page, name]) => (
          <a key={page} href={page} aria-current={path === page ? "page" : undefined}>{name}{page === "/" && waiting > 0 && <span class="count">{waiting}</span>}</a>
        ))}
        <span class="grow" />
        {session?.read_only && <span class="chip">read-only</span>}
        {"Notification" in window && Notification.permission === "default" && <button class="link" onClick={(e) => (e.currentTarget.hidden = true, void Notification.requestPermission())}>Notify me</button>}
        <button class="link" onClick={() => setTheme(THEMES[(THEMES.indexOf(theme as "auto") + 1) % 3]!)} title="Change the colours">{theme === "auto" ? "Auto" : theme === "dark" ? "Dark" : "Light"}</button>
        <button class="link" onClick={() => dispatchEvent(new KeyboardEvent("keydown", { key: "?" }))} aria-label="Show the keys">?</button>
      </nav>
      {problem === "offline" && <p class="banner" role="status">The server does not answer. Trying again…</p>}
      {problem instanceof Refused ? (
        <main class="signin"><h1>{problem.message}</h1><p>{problem.help ? `Please ${problem.help}.` : ""} It looks like <code>http://127.0.0.1:…/#token=…</code> and is the first line that <code>fusee serve</code> prints.</p></main>
      ) : !session ? (
        <main aria-busy="true" />
      ) : run ? (
        <RunPage key={run} run={run} session={session} />
      ) : path === "/start" ? (
        <Start session={session} />
      ) : path === "/compare" ? (
        <Compare />
      ) : path === "/prompt" || path === "/templates" ? (
        <Prompt session={session} />
      ) : path === "/bench" ? (
        <Bench />
      ) : path === "/" ? (
        <Inbox session={session} />
      ) : (
        <main><h1>There is no such page</h1><p><a href="/">Inbox</a></p></main>
      )}
      <KeyHelp />
    </>
  );
}

render(<App />, document.getElementById("page")!);
