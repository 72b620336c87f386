// What can be done with a run on its page: rewind, fork, export; the plan before a start; notifications; rows of rare events.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { call, GREET, runOf, scenario, text } from "./scenario.mjs";
import { fusee, until } from "./site.mjs";

const write = (path, content) => call("write_file", { path, content });

scenario("a run is rewound to a turn, and its files with it", async (project, watch) => {
  const model = project.script([write("a.txt", "a"), write("b.txt", "b"), text("Both."), text("Only the first.")]);
  await project.run(["run", "Write both.", "-m", model, "--run-id", "both", "--sandbox", "off"]);
  const site = await project.serve(["-m", model]);
  const page = await watch(site, "/runs/both");
  await page.waitForSelector(".event.end");
  // Before the second turn: the first file is there, the second is not.
  const row = page.locator(".row", { has: page.locator("text=/^Turn 2/") });
  await row.hover();
  await row.getByRole("button", { name: "rewind" }).click();
  await page.waitForSelector("dialog.turns .plan li");
  assert.equal(await page.textContent("dialog.turns .plan"), "Files that go backb.txt");
  await page.click("dialog.turns button.primary");
  await page.waitForURL((url) => !url.pathname.endsWith("/both"));
  await page.waitForSelector(".event.stage a[href='/runs/both']");
  assert.ok(existsSync(join(project.directory, "a.txt")));
  assert.ok(!existsSync(join(project.directory, "b.txt")));
  // The conversation goes on from there, in a run of its own.
  const rewound = runOf(page);
  await page.fill(".composer textarea", "Leave it at that.");
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => !url.pathname.endsWith(rewound));
  await page.waitForSelector(".event.end");
  assert.match(await page.textContent(".facts"), new RegExp("continues"));
});

scenario("a run is forked with another message", async (project, watch) => {
  const model = project.script([write("a.txt", "a"), text("Written."), text("Forked.")]);
  await project.run(["run", "Write it.", "-m", model, "--run-id", "origin", "--sandbox", "off"]);
  const site = await project.serve(["-m", project.script([text("Forked.")])]);
  const page = await watch(site, "/runs/origin");
  await page.click(".runhead button:has-text('Fork')");
  await page.fill("dialog.turns textarea", "Now in French.");
  await page.click("dialog.turns button.primary");
  await page.waitForURL((url) => !url.pathname.endsWith("/origin"));
  await page.waitForSelector(".event.end");
  assert.match(await page.textContent(".transcript"), /Now in French\./);
  assert.equal(readFileSync(join(project.directory, "a.txt"), "utf8"), "a");
  // The origin is as it was.
  assert.equal((await site.api("/api/runs/origin")).state, "completed");
});

scenario("a run is exported in four formats, and the cassette can be played", async (project, watch) => {
  const model = project.script([write("a.txt", "a"), text("Written **once**.")]);
  await project.run(["run", "Write it.", "-m", model, "--run-id", "origin", "--sandbox", "off"]);
  const site = await project.serve();
  const page = await watch(site, "/runs/origin");
  const download = async (name) => {
    if (!(await page.isVisible(".menu ul"))) await page.click(".menu summary");
    const [file] = await Promise.all([page.waitForEvent("download"), page.click(`.menu a:has-text('${name}')`)]);
    const path = join(project.base, file.suggestedFilename());
    await file.saveAs(path);
    return path;
  };
  assert.match(readFileSync(await download("Markdown"), "utf8"), /^# Write it\.[\s\S]*Written \*\*once\*\*\./);
  const events = readFileSync(await download("Events"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(events, await site.api("/api/runs/origin/events?limit=1000"));
  const trajectory = JSON.parse(readFileSync(await download("ATIF"), "utf8"));
  assert.match(trajectory.schema_version, /^ATIF-v1/);
  assert.equal(trajectory.session_id, "origin");
  const cassette = await download("Cassette");
  const played = await project.run(["run", "Write it again.", "-m", `replay:${cassette}`, "--sandbox", "off", "--approve", "auto"]).catch((error) => error.message);
  assert.match(played, /Written/);
});

scenario("the plan is shown before anything is spent", async (project, watch) => {
  project.write("AGENTS.md", "Always answer in verse.\n");
  project.write(".fusee/templates/greet.xml", GREET);
  const model = project.script([text("Hello.")]);
  const site = await project.serve(["-m", model, "--max-turns", "7"]);
  const page = await watch(site, "/start");
  await page.fill("textarea", "Look around.");
  await page.waitForSelector(".planned table");
  const plan = await page.textContent(".planned");
  assert.match(plan, /nothing has been spent/);
  assert.ok(plan.includes(model), plan);
  assert.match(plan, /7 turns/);
  assert.match(plan, /commandsnot confined/);
  // What the model would receive.
  assert.match(await page.$$eval(".planned .sections details", (parts) => parts.map((part) => part.textContent).join("\n")), /Always answer in verse\.[\s\S]*Look around\./);
  // A program: its calls, and how many of them are certain.
  await page.fill("textarea", `(progn (greet (who "Ada")) (greet (who "Grace")))`);
  await page.waitForSelector(".planned pre:has-text('greet')");
  await page.waitForSelector(".planned:has-text('2 calls in the source')");
  // A program that cannot run is not planned.
  await page.fill("textarea", `(greet`);
  await page.waitForSelector(".planned:has-text('workflow:1:1')");
  await page.goto(`${site.origin}/start?task=greet`);
  await page.fill("[name=who]", "Ada");
  await page.waitForSelector(".planned .sections details:has-text('Greet Ada 1 times.')", { state: "attached" });
  assert.deepEqual(await site.api("/api/runs"), []);
});

scenario("the prompt page shows every section", async (project, watch) => {
  project.write("AGENTS.md", "Always answer in verse.\n");
  project.write(".fusee/skills/rhymes/SKILL.md", "---\nname: rhymes\ndescription: How to find rhymes\n---\nListen.\n");
  project.write(".fusee/templates/greet.xml", GREET);
  const site = await project.serve();
  const page = await watch(site, "/prompt");
  await page.waitForSelector(".sections details");
  const shown = await page.$$eval(".sections details", (parts) => parts.map((part) => part.textContent).join("\n"));
  assert.match(shown, /Always answer in verse\./);
  assert.match(shown, /How to find rhymes/);
  await page.waitForSelector("details.task:has-text('greet')");
});

scenario("a notification appears when a run needs the user", async (project, watch) => {
  const model = project.script([write("a.txt", "a"), text("Written.")]);
  const site = await project.serve(["-m", model]);
  const hidden = () => {
    // A page in the background; the constructor is observed.
    Object.defineProperty(document, "hidden", { get: () => true });
    window.notes = [];
    const Real = window.Notification;
    window.Notification = class extends Real {
      constructor(title, options) {
        super(title, options);
        window.notes.push({ title, ...options, note: this });
      }
    };
  };
  const page = await watch(site, "/", { permissions: ["notifications"], init: hidden });
  await page.waitForSelector("main .empty");
  const { run } = await site.api("/api/runs", { request: "Write it.", approve: "ask" });
  await page.waitForFunction(() => window.notes.length > 0, null, { timeout: 30_000 });
  const note = await page.evaluate(() => ({ title: window.notes[0].title, body: window.notes[0].body }));
  assert.deepEqual(note, { title: "fusee needs you", body: "write_file: Write it." });
  // A click opens the run.
  await page.evaluate(() => window.notes[0].note.onclick());
  await page.waitForURL(`**/runs/${run}`);
  await page.waitForSelector(".question");
  await page.keyboard.press("y");
  await page.waitForSelector(".event.end");
  // One question, one notification.
  assert.equal(await page.evaluate(() => window.notes.length), 1);
});

scenario("a run of another process is stopped, told something and cancelled", async (project, watch) => {
  const model = project.script([text("Far too long.", { delay_ms: 600_000 }), text("Far too long again.", { delay_ms: 600_000 })]);
  const site = await project.serve();
  const terminal = project.spawn(["-qec", `${fusee} run 'Think.' -m ${model} --run-id elsewhere --sandbox off`, "/dev/null"], { program: "script" });
  await until(async () => (await site.api("/api/runs")).some((run) => run.run === "elsewhere"));
  const page = await watch(site, "/runs/elsewhere");
  await page.waitForSelector(".event.turn");
  await page.fill(".composer textarea", "Be brief.");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".event.user:has-text('Be brief.')");
  await page.click("button:has-text('Cancel')");
  await page.waitForSelector(".runhead .badge.cancelled");
  assert.notEqual(await terminal.ended, 0);
});

scenario("hooks, chosen flows and other rare events have rows of their own", async (project, watch) => {
  project.write(".fusee/hooks.json", JSON.stringify({ hooks: { PreToolUse: [{ matcher: "Bash", hooks: [{ type: "command", command: "sh .fusee/no-rm.sh", timeout: 10 }] }] } }));
  project.write(".fusee/no-rm.sh", `if grep -q '"command":"rm '; then echo 'files are removed by people' >&2; exit 2; fi\n`);
  await project.run(["trust", "--yes"]);
  const model = project.script([call("shell", { command: "rm -r src" }), text("I was not allowed to.")]);
  await project.run(["run", "Remove src.", "-m", model, "--run-id", "hooked", "--sandbox", "off"]);
  const site = await project.serve();
  const page = await watch(site, "/runs/hooked");
  await page.waitForSelector(".event.end");
  assert.match(await page.textContent(".event.warn:has-text('Hook')"), /Hook PreToolUse sh \.fusee\/no-rm\.sh block .*: files are removed by people/);
  await page.waitForSelector(".timeline rect.hook.failed", { state: "attached" });
  // Events that need a small model or a network are added to what the server says.
  const seen = (await site.api("/api/runs/hooked/events?limit=1000"))[0];
  const rare = [
    [{ type: "network", host: "<b>example.org</b>", port: 443, verdict: "refused", reason: "not allowed" }, "Connection to <b>example.org</b>:443 refused: not allowed"],
    [{ type: "flow_chosen", flow: "direct", reason: "a small model" }, "Flow direct: a small model"],
    [{ type: "files_located", files: [{ path: "src/<i>.py", reason: "named by a failing test" }], tests: ["test_total"] }, "Files for the request: src/<i>.py named by a failing testtest_total test"],
    [{ type: "sample", n: 2, verdict: "not_parsed", reason: "line 3", tokens: 1200, duration_ms: 800, repairs: 1 }, "Answer 2 not parsed repairs answer 1, 1.2k tokens, 800 ms: line 3"],
    [{ type: "rewound", from_run: "first", turn: 1, files: true, conversation: true }, "Begins as first after 1 turn"],
    [{ type: "phase_transition", from: "explore", to: "edit", source: "runtime", turn_index: 2, reason: "enough was read" }, "Phase explore to edit: enough was read"],
    [{ type: "expansion", section_keys: ["tools"], reason: "needed", opened: ["tools"] }, "Opened tools needed"],
  ];
  await page.route("**/api/runs/hooked/events?*", (route) => route.fulfill({ json: rare.map(([event], n) => ({ ...seen, ...event, seq: n + 1 })) }));
  await page.route("**/api/runs/hooked/index?*", (route) => route.fulfill({ json: { count: rare.length, last: rare.length, every: 200, starts: [1] } }));
  await page.route("**/api/runs/hooked/stream?*", (route) => route.fulfill({ contentType: "text/event-stream", body: "event: end\ndata: {}\n\n" }));
  await page.reload();
  await page.waitForSelector(`.row[data-seq="${rare.length}"]`);
  const rows = await page.$$eval(".row[data-seq] .event", (rows) => rows.map((row) => row.textContent));
  assert.deepEqual(rows, rare.map(([, words]) => words));
});
