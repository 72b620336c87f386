// What the pages show: filters, search and pausing of a run, lanes and programs of workflows, benchmarks, keys, undo.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { call, scenario, text } from "./scenario.mjs";

const rows = (page) => page.$$eval(".row[data-seq] .event", (rows) => rows.map((row) => row.textContent));

scenario("a run is filtered and searched, and the address says how", async (project, watch) => {
  project.write("notes.txt", "one\n");
  const model = project.script([call("read_file", { path: "notes.txt" }), call("read_file", { path: "absent.txt" }), call("shell", { command: "echo needle" }), text("Done.")]);
  await project.run(["run", "Look.", "-m", model, "--run-id", "looked", "--sandbox", "off"]);
  const site = await project.serve();
  const page = await watch(site, "/runs/looked");
  await page.waitForSelector(".event.end");
  await page.selectOption("nav.tabs select", "failed");
  await page.waitForFunction(() => document.querySelectorAll(".row[data-seq]").length === 1);
  assert.match((await rows(page))[0], /✗ read_file/);
  assert.match(page.url(), /kind=failed/);
  await page.selectOption("nav.tabs select", "tool:shell");
  await page.waitForFunction(() => document.querySelectorAll(".row[data-seq]").length === 2);
  await page.selectOption("nav.tabs select", "");
  await page.keyboard.press("/");
  await page.keyboard.type("needle");
  await page.keyboard.press("Enter");
  await page.waitForURL(/text=needle/);
  await page.waitForFunction(() => document.querySelectorAll(".row[data-seq]").length === 2);
  // The address is all that is needed to see the same.
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll(".row[data-seq]").length === 2);
  assert.equal(await page.inputValue("input[type=search]"), "needle");
  // A number is a link to its event.
  await page.click(".row[data-seq] .seq");
  await page.waitForURL(/event=\d+/);
  await page.waitForSelector(".row.selected");
  await page.keyboard.press("k");
  await page.keyboard.press("?");
  await page.waitForSelector("dialog.keys");
  assert.match(await page.textContent("dialog.keys"), /Pause and continue live updates/);
});

scenario("live updates are paused and continued", async (project, watch) => {
  const reads = Array.from({ length: 30 }, (_, n) => call("search_text", { pattern: `word ${n}` }, { delay_ms: 100 }));
  const site = await project.serve(["-m", project.script([...reads, text("Done.")])]);
  const { run } = await site.api("/api/runs", { request: "Read on." });
  const page = await watch(site, `/runs/${run}`);
  await page.waitForSelector(".event.call");
  await page.keyboard.press("p");
  await page.waitForSelector("button[aria-pressed=true]:has-text('Continue')");
  const last = () => page.$$eval(".row[data-seq]", (rows) => Number(rows.at(-1)?.dataset.seq));
  const before = await last();
  await page.waitForFunction(async (run) => (await (await fetch(`/api/runs/${run}`)).json()).state === "completed", run);
  assert.equal(await last(), before);
  await page.keyboard.press("p");
  await page.waitForSelector(".event.end");
  const listed = (await site.api(`/api/runs/${run}/events?limit=1000`)).map((event) => event.seq);
  assert.equal(await last(), listed.at(-1));
});

scenario("parallel tasks are lanes, and stand beside the line that calls them", async (project, watch) => {
  const program = `(defatom describe (params (part string)) (instructions "Describe {{part}} in a word."))\n(pmap (lambda (part) (describe (part part)))\n      (list "cart" "order" "invoice"))\n`;
  const site = await project.serve(["-m", project.script([1, 2, 3].map((n) => text(`Word ${n}.`, { delay_ms: 700 * n })))]);
  const { run } = await site.api("/api/runs", { workflow: program });
  const page = await watch(site, `/runs/${run}?tab=program`);
  // While it runs.
  await page.waitForSelector("table.program .call.running");
  await page.waitForSelector(".runhead .badge.completed");
  const calls = () => page.$$eval("table.program tr", (lines) => lines.map((line) => [...line.querySelectorAll(".call")].map((call) => call.textContent.replace(/ [\d.]+ m?s$/, ""))));
  await page.waitForFunction(() => document.querySelectorAll("table.program .call.completed").length === 3);
  assert.deepEqual((await calls()).map((line) => line.length), [0, 3, 0]);
  assert.deepEqual((await calls())[1].sort(), ["✓ Word 1.", "✓ Word 2.", "✓ Word 3."]);
  assert.equal(await page.locator(".timeline .names li").count(), 4);
  await page.click("table.program .call");
  await page.waitForSelector(".row.selected");
});

scenario("benchmark jobs are listed, compared, and lead to their runs", async (project, watch) => {
  await project.run(["run", "Look.", "-m", project.script([text("Done.")]), "--run-id", "trial", "--sandbox", "off"]);
  const trial = (n, passed, cause = null) => JSON.stringify({ case: `case-${n}`, attempt: 1, tries: 1, passed, reward: Number(passed), cause, model: "small", flow: "staged", turns: 3, tokens: 4000, cost_usd: 0.01, seconds: 3, run: "trial" });
  project.write("bench/one/results.jsonl", [trial(1, true), trial(2, false, "timeout"), trial(3, true)].join("\n") + "\n");
  project.write("bench/two/results.jsonl", [trial(1, true), trial(2, true), trial(3, true)].join("\n") + "\n");
  const site = await project.serve();
  const page = await watch(site, "/bench");
  await page.click("a:has-text('bench/one')");
  await page.waitForSelector("canvas");
  assert.match(await page.textContent(".causes"), /timeout.*1/);
  await page.click("button:has-text('compare')");
  await page.waitForSelector("h3:has-text('1 of 3 cases')");
  assert.match(await page.textContent(".verdict"), /33\.3 points.*not statistically significant/);
  // The comparison is in the address, and the back button leaves it.
  assert.match(page.url(), /with=bench%7Etwo/);
  await page.goBack();
  await page.waitForSelector(".compared", { state: "detached" });
  await page.goForward();
  await page.click(".compared a:has-text('run') >> nth=0");
  await page.waitForURL("**/runs/trial");
  await page.goBack();
  await page.click("table a:has-text('case-1')");
  await page.waitForURL("**/runs/trial");
  await page.waitForSelector(".event.end");
});

scenario("the changes of a run are undone on its page", async (project, watch) => {
  await project.run(["run", "Write.", "-m", project.script([call("write_file", { path: "a.txt", content: "a" }), text("Written.")]), "--run-id", "wrote", "--sandbox", "off"]);
  const site = await project.serve();
  const page = await watch(site, "/runs/wrote");
  await page.click("button:has-text('Undo changes')");
  await page.waitForSelector(".notice:has-text('undone')");
  assert.ok(!existsSync(join(project.directory, "a.txt")));
});

scenario("a read-only page offers nothing that changes something", async (project, watch) => {
  await project.run(["run", "Write.", "-m", project.script([call("write_file", { path: "a.txt", content: "a" }), text("Written.")]), "--run-id", "wrote", "--sandbox", "off"]);
  const site = await project.serve(["--read-only"]);
  const page = await watch(site, "/runs/wrote");
  await page.waitForSelector(".event.end");
  assert.deepEqual(await page.$$eval(".runhead .actions > *", (shown) => shown.map((element) => element.querySelector("summary")?.textContent ?? element.textContent)), ["Compare", "Export"]);
  assert.equal(await page.$(".composer, .rowactions"), null);
  await page.goto(`${site.origin}/start`);
  await page.waitForSelector("text=read-only: nothing can be started");
});
