// Every page at three widths, light and dark: nothing is too wide, and axe finds nothing serious. SCREENSHOTS names a folder for
// pictures, to be looked at.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { call, GREET, scenario, text } from "./scenario.mjs";
import { axeSource, fusee, until } from "./site.mjs";

scenario("every page at three widths, light and dark, without a serious finding of axe", async (project, watch, t) => {
  await sample(project);
  const site = await project.serve(["-m", project.script([text("unused")])]);
  const shots = process.env.SCREENSHOTS;
  if (shots) mkdirSync(shots, { recursive: true });
  const pages = {
    inbox: "/",
    run: "/runs/fix-totals",
    live: "/runs/asks",
    start: "/start",
    form: "/start?task=greet",
    compare: "/compare?a=fix-totals&b=second",
    prompt: "/prompt",
    bench: "/bench?job=bench~small",
    flips: "/bench?job=bench~small&with=bench~large",
    context: "/runs/fix-totals?tab=context",
    answer: "/runs/fix-totals?tab=answer",
    program: "/runs/parallel?tab=program",
    lanes: "/runs/parallel",
    plan: "/start",
    fork: "/runs/second",
    rewind: "/runs/fix-totals",
    keys: "/",
  };
  /// What is done on a page before it is looked at.
  const acts = {
    plan: async (page) => {
      await page.fill("textarea", "Make the cart's total count quantities.");
      await page.waitForSelector(".planned table");
    },
    fork: (page) => page.click(".runhead button:has-text('Fork')"),
    rewind: async (page) => {
      await page.click(".runhead button:has-text('Rewind')");
      await page.fill("dialog.turns input[type=number]", "1");
      await page.waitForSelector("dialog.turns .plan li");
    },
    keys: (page) => page.keyboard.press("?"),
  };
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
        await acts[name]?.(page);
        // What is loaded arrives within this time; a picture that is too early is no error.
        await page.waitForTimeout(450);
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
  const trial = (n, passed, cause = null) => JSON.stringify({ case: `case-${n}`, language: ["go", "python"][n % 2], tool_errors: n % 4 ? {} : { edit_file: 1, shell: n % 3 }, attempt: 1, tries: 1, passed, reward: Number(passed), cause, model: "small", flow: "staged", turns: 3 + (n % 5), tokens: 4000 + 700 * (n % 7), cost_usd: 0.002 * n, seconds: 3 + n, run: "fix-totals" });
  const job = (passes) => Array.from({ length: 24 }, (_, n) => trial(n, passes(n), !passes(n) && n % 11 === 1 ? "timeout" : null)).join("\n") + "\n";
  project.write("bench/small/results.jsonl", job((n) => (n * 7) % 5 > 1));
  project.write("bench/large/results.jsonl", job((n) => n % 5 > 0 || n % 2 > 0));
  const asks = project.script([call("shell", { command: "git push --force origin main" }), text("Pushed.")]);
  const child = project.spawn(["-qec", `${fusee} run 'Publish the branch.' -m ${asks} --run-id asks --approve ask`, "/dev/null"], { program: "script" });
  await until(() => /push --force/.test(child.text), () => child.text);
}
