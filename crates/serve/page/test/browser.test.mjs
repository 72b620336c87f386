// The page in a real Chromium, on real runs of the real binary: watching, answering, stopping, resuming, starting, comparing.
import assert from "node:assert/strict";
import { call, GREET, numbers, runOf, scenario, text } from "./scenario.mjs";
import { fusee, until } from "./site.mjs";

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
  const run = runOf(page);
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
    // An error text that names it.
    call("read_file", { path: `absent-${name}` }),
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
