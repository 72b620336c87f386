// The page in a real Chromium, on real runs of the real binary.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { axeSource, browser as launch, fusee, open, Project, until } from "./site.mjs";

let browser;
before(async () => (browser = await launch()));
after(async () => await browser?.close());

const call = (name, args, more = {}) => ({ tool_calls: [{ name, arguments: args }], ...more });
const text = (text, more = {}) => ({ text, ...more });

const GREET = `<task name="greet" type="atomic">
  <description>Greets someone, as often as needed</description>
  <inputs>
    <input name="who">Name of the person</input>
    <input name="times" type="number" default="1"/>
    <input name="loud" type="boolean" default="false"/>
  </inputs>
  <instructions>Greet {{who}} {{times}} times.</instructions>
</task>`;

/// Runs a test with a project of its own.
const scenario = (name, work) =>
  test(name, { timeout: 600_000 }, async (t) => {
    const project = new Project();
    const pages = [];
    const watch = async (site, path, options) => {
      const page = await open(browser, site, path, options);
      pages.push(page);
      return page;
    };
    try {
      await work(project, watch, t);
      for (const page of pages) assert.deepEqual(page.problems, []);
    } finally {
      for (const page of pages) await page.context().close();
      await project.end();
    }
  });

/// Numbers of the rows that the transcript has, from top to bottom.
const numbers = (page) => page.$$eval(".row[data-seq]", (rows) => rows.map((row) => Number(row.dataset.seq)));

scenario("a live run is watched to its end", async (project, watch) => {
  const model = project.script([
    text("First I **look** around.", { ...call("list_dir", { path: "." }), delay_ms: 300 }),
    text("All is `well`.", { delay_ms: 300 }),
  ]);
  const site = await project.serve(["-m", model]);
  const page = await watch(site, "/start");
  await page.fill("textarea", "Look around.");
  await page.keyboard.press("Control+Enter");
  await page.waitForURL(/\/runs\//);
  await page.waitForSelector(".event.end");
  await page.waitForSelector(".runhead .badge.completed");
  assert.equal(await page.textContent(".event.assistant strong"), "look");
  assert.ok((await page.$$(".timeline rect.model")).length >= 2);
  const run = page.url().split("/").pop().split("?")[0];
  const listed = (await site.api(`/api/runs/${run}/events?limit=1000`)).map((event) => event.seq);
  assert.deepEqual(await numbers(page), listed);
  // Back to the list, by the button of the browser.
  await page.click("nav.top a[href='/']");
  await page.waitForSelector(`[data-run="${run}"]`);
  await page.goBack();
  await page.waitForSelector(".event.end");
  // A link to one event.
  await page.goto(`${site.origin}/runs/${run}?event=${listed[3]}`);
  await page.waitForSelector(`.row.selected[data-seq="${listed[3]}"]`);
});

scenario("a command is allowed and another refused while a terminal watches", async (project, watch) => {
  const model = project.script([call("write_file", { path: "a.txt", content: "a" }), call("write_file", { path: "b.txt", content: "b" }), text("One of two.")]);
  const site = await project.serve();
  const terminal = project.spawn(["-qec", `${fusee} run 'Write both.' -m ${model} --run-id shared --approve ask --sandbox off`, "/dev/null"], { program: "script" });
  const page = await watch(site, "/");
  await page.waitForSelector(".question");
  assert.match(await page.textContent(".question"), /a\.txt/);
  // The terminal asks, too.
  await until(() => /a\.txt/.test(terminal.text));
  await page.keyboard.press("y");
  await page.waitForFunction(() => /b\.txt/.test(document.querySelector(".question")?.textContent ?? ""));
  await page.click(".question a");
  await page.waitForSelector(".question");
  await page.fill(".question input", "not this one");
  await page.click(".question button:has-text('Deny')");
  assert.equal(await terminal.ended, 0);
  assert.match(terminal.text, /not this one/);
  await page.waitForSelector(".event.end");
  await page.waitForSelector(".question", { state: "detached" });
});

scenario("the terminal answers first and the page is told", async (project, watch) => {
  const model = project.script([call("write_file", { path: "a.txt", content: "a" }), text("Written.")]);
  const site = await project.serve();
  const terminal = project.spawn(["-qec", `${fusee} run 'Write it.' -m ${model} --run-id race --approve ask --sandbox off`, "/dev/null"], { program: "script" });
  await until(() => /a\.txt/.test(terminal.text));
  const page = await watch(site, "/runs/race");
  await page.waitForSelector(".question");
  terminal.stdin.write("y\n");
  await page.waitForSelector(".event.end");
  await page.waitForSelector(".question", { state: "detached" });
  const late = await fetch(`${site.origin}/api/runs/race/approve`, { method: "POST", headers: { authorization: `Bearer ${site.token}`, "content-type": "application/json" }, body: JSON.stringify({ id: "x", decision: "deny" }) });
  assert.equal(late.status, 409);
});

scenario("a turn is stopped, a message sent, and the conversation continued", async (project, watch) => {
  const model = project.script([text("Far too long.", { delay_ms: 600_000 }), text("As you wish."), text("You are welcome.")]);
  const site = await project.serve(["-m", model]);
  const { run } = await site.api("/api/runs", { request: "Think." });
  const page = await watch(site, `/runs/${run}`);
  await page.waitForSelector(".event.turn");
  await page.click("button:has-text('Stop turn')");
  await page.waitForSelector(".question");
  await page.fill(".question input", "Be brief.");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".event.end");
  assert.match(await page.textContent(".transcript"), /Be brief\.[\s\S]*As you wish\./);
  await page.waitForSelector("textarea[placeholder^=Continue]");
  await page.keyboard.press("m");
  await page.keyboard.type("Thank you.");
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => !url.pathname.endsWith(run));
  await page.waitForSelector(".event.end");
  assert.match(await page.textContent(".runhead"), /continues/);
});

scenario("after kill -9 the page reconnects, and the resumed run has every event once", async (project, watch) => {
  const model = project.script([call("shell", { command: "sleep 600" }), text("Resumed and done.")]);
  project.write(".token", "a-token-of-the-users-own");
  const args = ["-m", model, "--token-file", ".token"];
  let site = await project.serve(args);
  const { run } = await site.api("/api/runs", { request: "Sleep." });
  const page = await watch(site, `/runs/${run}`);
  await page.waitForSelector(".event.call");
  site.kill("SIGKILL");
  await site.ended;
  await page.waitForSelector("text=reconnecting");
  site = await project.serve([...args, "--port", new URL(site.origin).port]);
  await page.waitForSelector("button:has-text('Resume')");
  await page.click("button:has-text('Resume')");
  await page.waitForSelector(".event.end");
  const listed = (await site.api(`/api/runs/${run}/events?limit=1000`)).map((event) => event.seq);
  assert.deepEqual(await numbers(page), listed);
});

scenario("an old page says what to do", async (project, watch) => {
  const site = await project.serve();
  const page = await watch(site, "/");
  await page.waitForSelector("main .empty");
  site.kill("SIGKILL");
  await site.ended;
  await project.serve(["--port", new URL(site.origin).port]);
  await page.waitForSelector("text=open the URL that fusee printed");
});

scenario("a template with a wrong input says so at the field", async (project, watch) => {
  project.write(".fusee/templates/greet.xml", GREET);
  const site = await project.serve(["-m", project.script([text("Hello, Ada.")])]);
  const page = await watch(site, "/start?task=greet");
  await page.fill("[name=times]", "often");
  await page.click("button.primary");
  await page.waitForSelector(".field.wrong [name=who]");
  assert.equal(await page.textContent("#input-who-note"), "this input is required");
  assert.equal(await page.textContent("#input-times-note"), "this must be of type number");
  await page.fill("[name=who]", "Ada");
  await page.fill("[name=times]", "2");
  await page.click("button.primary");
  await page.waitForSelector(".event.end");
});

scenario("two runs are compared", async (project, watch) => {
  const read = (path) => call("read_file", { path });
  project.write("notes.txt", "one\n");
  await project.run(["run", "Read.", "-m", project.script([read("notes.txt"), text("One.")]), "--run-id", "first", "--sandbox", "off"]);
  await project.run(["run", "Read.", "-m", project.script([read("notes.txt"), read("absent.txt"), text("Two.")]), "--run-id", "second", "--sandbox", "off"]);
  const site = await project.serve();
  const page = await watch(site, "/");
  await page.waitForSelector("[data-run=first]");
  for (const key of ["j", "x", "j", "x", "c"]) await page.keyboard.press(key);
  await page.waitForSelector("table.aligned tr.first");
  assert.match(await page.textContent("table.aligned tr.first"), /absent\.txt/);
});

scenario("what models, files and tools say is text", async (project, watch) => {
  const evil = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>`;
  const name = `<img src=x onerror=hit=1>.txt`;
  const model = project.script([
    call("write_file", { path: name, content: evil }, { text: `${evil} [x](javascript:window.hit=1) **b**`, reasoning: evil }),
    call("edit_file", { path: name, old: evil, new: `${evil}${evil}` }),
    call("shell", { command: `echo '${evil.replaceAll("'", "")}'; exit 3` }),
    text("```\n</script><script>window.hit=1</script>\n```\n\n| a |\n|---|\n| <b onclick=hit()> |"),
  ]);
  const site = await project.serve(["-m", model]);
  const { run } = await site.api("/api/runs", { request: evil });
  const page = await watch(site, `/runs/${run}`);
  await page.waitForSelector(".event.end");
  for (const toggle of await page.$$(".toggle[aria-expanded=false]")) await toggle.click();
  for (const tab of ["answer", "context", "program"]) {
    await page.goto(`${site.origin}/runs/${run}?tab=${tab}`);
    await page.waitForSelector(".panel:not([aria-busy])");
  }
  await page.goto(`${site.origin}/`);
  await page.waitForSelector("ul.runs li");
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.equal(await page.$("main img, main script, main a[href^='javascript']"), null);
});

scenario("a run of 100 000 events opens at once and scrolls without stalls", async (project, watch, t) => {
  project.write("long.fusee", `(loop 100000 (log-message "a line of the log that is about as long as usual lines of logs are"))`);
  await project.run(["task", "long.fusee", "--run-id", "long", "-m", project.script([text("unused")])]);
  const site = await project.serve();
  const page = await watch(site, "/");
  await page.waitForSelector("[data-run=long]");
  const since = Date.now();
  await page.goto(`${site.origin}/runs/long?at=start`);
  await page.waitForSelector(".row[data-seq]");
  const first = Date.now() - since;
  // Jump through the whole run; count frames that took too long.
  const slow = await page.evaluate(async () => {
    const box = document.querySelector(".transcript");
    const frames = [];
    box.dispatchEvent(new WheelEvent("wheel"));
    let last = performance.now();
    for (let n = 0; n <= 120; n++) {
      box.scrollTop = (box.scrollHeight * n) / 120;
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      frames.push(now - last);
      last = now;
    }
    return { worst: Math.max(...frames), slow: frames.filter((ms) => ms > 100).length };
  });
  await page.waitForFunction(() => document.querySelectorAll(".row[data-seq]").length > 5);
  const memory = await page.evaluate(() => performance.memory.usedJSHeapSize / 1e6);
  const rows = await page.$$eval(".row", (rows) => rows.length);
  t.diagnostic(`first rows after ${first} ms, worst frame ${Math.round(slow.worst)} ms, ${slow.slow} frames over 100 ms, heap ${Math.round(memory)} MB, ${rows} rows`);
  assert.ok(first < (process.env.CI_SLOW ? 5000 : 2000), `first rows after ${first} ms`);
  assert.ok(memory < 150, `${memory} MB`);
  assert.ok(rows < 400, `${rows} rows exist`);
  assert.ok(slow.slow <= 6, JSON.stringify(slow));
  // A link into the middle.
  const middle = (await site.api("/api/runs/long/index?every=50000")).starts[1];
  await page.goto(`${site.origin}/runs/long?event=${middle}`);
  await page.waitForSelector(`.row.selected[data-seq="${middle}"]`);
});

scenario("every page at three widths, light and dark, without a serious finding of axe", async (project, watch, t) => {
  await sample(project);
  const site = await project.serve();
  const shots = process.env.SCREENSHOTS;
  if (shots) mkdirSync(shots, { recursive: true });
  const pages = { inbox: "/", run: "/runs/fix-totals", live: "/runs/asks", start: "/start", form: "/start?task=greet", compare: "/compare?a=fix-totals&b=second", templates: "/templates", bench: "/bench?job=bench~small", context: "/runs/fix-totals?tab=context", answer: "/runs/fix-totals?tab=answer", program: "/runs/parallel?tab=program", lanes: "/runs/parallel" };
  const findings = [];
  for (const scheme of ["light", "dark"]) {
    for (const width of [390, 1024, 1920]) {
      const page = await watch(site, "/", { width, height: width === 390 ? 844 : 1000, scheme });
      await page.waitForSelector("ul.runs li");
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(site.origin + path);
        await page.waitForSelector("main > *").catch(async (error) => {
          throw new Error(`${name} ${width}: ${error.message}\n${page.problems}\n${await page.content()}`.slice(0, 3000));
        });
        // What is loaded arrives within this time; a picture that is too early is no error.
        await page.waitForTimeout(700);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${name} is ${wide} pixels too wide at ${width}`);
        if (shots) await page.screenshot({ path: join(shots, `${name}-${width}-${scheme}.png`) });
        // Colours and structure are the same at every width but the narrow one, which has its own layout.
        if (width === 1920 || (width === 390 && scheme === "dark")) continue;
        const found = await axe(page);
        findings.push(...found.map((violation) => `${name} ${width} ${scheme}: ${violation}`));
      }
    }
  }
  assert.deepEqual(findings, []);
});

/// Serious and critical findings. The policy of the page forbids foreign scripts, so axe is evaluated by the debugger.
async function axe(page) {
  await page.evaluate(axeSource);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return result.violations
    .filter((violation) => ["serious", "critical"].includes(violation.impact))
    .map((violation) => `${violation.id}: ${violation.nodes.slice(0, 3).map((node) => node.target.join(" ") + " " + (node.any[0]?.message ?? "")).join(" | ")}`);
}

/// Runs of every kind, for pictures.
async function sample(project) {
  project.write("src/cart.py", "def total(items):\n    return sum(item.price for item in items)\n");
  project.write("notes.txt", "one\n");
  project.write(".fusee/templates/greet.xml", GREET);
  const usage = (input, output) => ({ usage: { input_tokens: input, output_tokens: output } });
  const fix = [
    text("I will read the cart first.", { reasoning: "The total ignores quantities. Where is it computed?", ...call("read_file", { path: "src/cart.py" }), ...usage(2100, 60), delay_ms: 120 }),
    call("search_text", { pattern: "quantity" }, { ...usage(2300, 30), delay_ms: 80 }),
    call("edit_file", { path: "src/cart.py", old: "item.price for item", new: "item.price * item.quantity for item" }, { ...usage(2500, 90), delay_ms: 200 }),
    call("shell", { command: "python3 -m pytest -q tests" }, { ...usage(2700, 40), delay_ms: 60 }),
    call("shell", { command: "python3 -c 'import ast,sys; ast.parse(open(\"src/cart.py\").read()); print(\"ok\")'" }, { ...usage(2800, 40), delay_ms: 90 }),
    text("The total now counts quantities.\n\n- `src/cart.py`: multiplies price and quantity\n- there are **no tests** to run; the file parses\n\n```python\nsum(item.price * item.quantity for item in items)\n```", { ...usage(2900, 120), delay_ms: 150 }),
  ];
  await project.run(["run", "Make the cart's total count quantities.", "-m", project.script(fix), "--run-id", "fix-totals", "--sandbox", "off"]);
  await project.run(["run", "Make the cart's total count quantities.", "-m", project.script([call("read_file", { path: "src/cart.py" }), call("read_file", { path: "absent.txt" }), text("Nothing to do.")]), "--run-id", "second", "--sandbox", "off"]);
  project.write("parallel.fusee", `(defatom describe (params (part string)) (instructions "Describe {{part}} in a word."))\n(pmap (lambda (part) (describe (part part)))\n      (list "cart" "order" "invoice" "stock"))\n`);
  await project.run(["task", "parallel.fusee", "-m", project.script([1, 2, 3, 4].map((n) => text(`Word ${n}.`, { delay_ms: 150 * n, ...usage(300, 8) }))), "--run-id", "parallel"]).catch(() => {});
  const trial = (n, passed, cause = null) => JSON.stringify({ case: `case-${n}`, attempt: 1, tries: 1, passed, reward: Number(passed), cause, model: "small", flow: "staged", turns: 3 + (n % 5), tokens: 4000 + 700 * (n % 7), cost_usd: 0.002 * n, seconds: 3 + n, run: "fix-totals" });
  const job = (seed) => Array.from({ length: 24 }, (_, n) => trial(n, (n * seed) % 5 > 1, (n * seed) % 11 === 1 ? "timeout" : null)).join("\n") + "\n";
  project.write("bench/small/results.jsonl", job(7));
  project.write("bench/large/results.jsonl", job(3));
  const asks = project.script([call("shell", { command: "git push --force origin main" }), text("Pushed.")]);
  const child = project.spawn(["-qec", `${fusee} run 'Publish the branch.' -m ${asks} --run-id asks --approve ask`, "/dev/null"], { program: "script" });
  await until(() => /push --force/.test(child.text), () => child.text);
}
