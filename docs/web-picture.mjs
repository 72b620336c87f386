// Makes docs/web.png from a real run in a real browser:
//   FUSEE=target/debug/fusee BROWSER_MODULES=target/browser node docs/web-picture.mjs
import { browser as launch, open, Project, until } from "../crates/serve/page/test/site.mjs";

const project = new Project();
const browser = await launch();
try {
  project.write("src/cart.py", "def total(items):\n    return sum(item.price for item in items)\n");
  const call = (name, args, more = {}) => ({ tool_calls: [{ name, arguments: args }], ...more });
  const usage = (input, output) => ({ usage: { input_tokens: input, output_tokens: output } });
  const model = project.script([
    { text: "I will read the cart first.", reasoning: "The total ignores quantities.", ...call("read_file", { path: "src/cart.py" }), ...usage(2100, 60), delay_ms: 900 },
    call("search_text", { pattern: "quantity" }, { ...usage(2300, 30), delay_ms: 500 }),
    call("edit_file", { path: "src/cart.py", old: "item.price for item", new: "item.price * item.quantity for item" }, { ...usage(2500, 90), delay_ms: 1200 }),
    call("shell", { command: "python3 -m pytest -q tests" }, { ...usage(2700, 40), delay_ms: 600 }),
    { text: "The total now counts quantities.", ...usage(2900, 120), delay_ms: 150 },
  ]);
  // The name of the model is in the picture.
  const site = await project.serve(["-m", model.replace(project.base, "..")]);
  const { run } = await site.api("/api/runs", { request: "Make the cart's total count quantities.", approve: "ask" });
  const waiting = async (name) => {
    const found = await until(async () => (await site.api("/api/approvals")).find((question) => question.tool === name));
    return found;
  };
  const edit = await waiting("edit_file");
  await site.api(`/api/runs/${run}/approve`, { id: edit.id, decision: "allow" });
  await waiting("shell");
  const page = await open(browser, site, `/runs/${run}`, { width: 1280, height: 820 });
  await page.waitForSelector(".question");
  await page.waitForSelector(".timeline rect.tool");
  await page.waitForTimeout(1500);
  await page.screenshot({ path: new URL("web.png", import.meta.url).pathname });
} finally {
  await browser.close();
  await project.end();
}
