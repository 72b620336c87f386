// Starts the real binary in a project of its own, and a real Chromium. FUSEE names the binary, BROWSER_MODULES the folder with
// playwright-core and axe-core, CHROMIUM the browser.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";

const modules = createRequire(join(process.env.BROWSER_MODULES, "package.json"));
const { chromium } = modules("playwright-core");
export const axeSource = modules("axe-core").source;
export const fusee = process.env.FUSEE;

export class Project {
  constructor() {
    this.base = mkdtempSync(join(tmpdir(), "fusee-web-"));
    this.directory = join(this.base, "shop");
    mkdirSync(join(this.directory, ".fusee"), { recursive: true });
    mkdirSync(join(this.base, "home"));
    this.children = [];
    this.scripts = 0;
  }

  write(path, text) {
    const file = join(this.directory, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  }

  /// A model that gives these replies.
  script(lines) {
    const file = join(this.base, `replies-${this.scripts++}.jsonl`);
    writeFileSync(file, lines.map((line) => JSON.stringify(line)).join("\n") + "\n");
    return `script:${file}`;
  }

  spawn(args, options = {}) {
    const env = { PATH: process.env.PATH, HOME: join(this.base, "home"), LANG: "C.UTF-8", TERM: "xterm" };
    const child = spawn(options.program ?? fusee, args, { cwd: this.directory, env, stdio: ["pipe", "pipe", "pipe"] });
    child.text = "";
    child.errors = "";
    child.stdout.on("data", (data) => (child.text += data));
    child.stderr.on("data", (data) => (child.errors += data));
    child.ended = new Promise((done) => child.on("exit", (code, signal) => done(code ?? signal)));
    this.children.push(child);
    return child;
  }

  async run(args) {
    const child = this.spawn(args);
    child.stdin.end();
    const code = await child.ended;
    if (code !== 0) throw new Error(`fusee ${args.join(" ")}: ${code}\n${child.errors}`);
    return child.text;
  }

  /// A server, with its URL.
  async serve(args = []) {
    const child = this.spawn(["serve", "--sandbox", "off", ...args]);
    await until(() => child.text.includes("\n"), () => `no URL: ${child.errors}`);
    child.url = child.text.split("\n")[0];
    const url = new URL(child.url);
    child.origin = url.origin;
    child.token = url.hash.slice("#token=".length);
    child.api = async (path, body) => {
      const headers = { authorization: `Bearer ${child.token}`, "content-type": "application/json" };
      const response = await fetch(child.origin + path, body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) });
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
      return response.json();
    };
    return child;
  }

  async end() {
    for (const child of this.children) child.kill("SIGKILL");
    await Promise.all(this.children.map((child) => child.ended));
    rmSync(this.base, { recursive: true, force: true, maxRetries: 5 });
  }
}

export async function until(seen, why = () => "it did not happen", limit = 60_000) {
  const since = Date.now();
  for (;;) {
    const found = await seen();
    if (found) return found;
    if (Date.now() - since > limit) throw new Error(why());
    await new Promise((done) => setTimeout(done, 30));
  }
}

export async function browser() {
  const executablePath = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
  return chromium.launch({
    executablePath,
    headless: true,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-precise-memory-info"],
  });
}

/// A page that fails the test on an error, a violation of the policy or a request to anywhere else.
export async function open(browser, site, path = "/", options = {}) {
  const context = await browser.newContext({ viewport: { width: options.width ?? 1280, height: options.height ?? 900 }, colorScheme: options.scheme ?? "light", reducedMotion: "reduce", permissions: options.permissions ?? [], acceptDownloads: true });
  if (options.init) await context.addInitScript(options.init);
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && !/Failed to load resource|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|net::/.test(message.text()) && page.problems.push(message.text()));
  page.on("request", (request) => !request.url().startsWith(site.origin) && !request.url().startsWith("data:") && page.problems.push(`request to ${request.url()}`));
  page.on("dialog", (dialog) => dialog.accept());
  if (process.env.PAGE_DIST) await serveFrom(page, site, process.env.PAGE_DIST);
  await page.goto(`${site.origin}${path}#token=${site.token}`);
  return page;
}

/// Shows the page of this folder instead of that in the binary: a change of the page is seen without compiling.
async function serveFrom(page, site, dist) {
  const body = gunzipSync(readFileSync(join(dist, "index.html.gz")));
  const policy = readFileSync(join(dist, "policy.txt"), "utf8").trim();
  const isDocument = (url) => url.origin === site.origin && !url.pathname.startsWith("/api/");
  await page.route(isDocument, (route) => route.fulfill({ body, contentType: "text/html; charset=utf-8", headers: { "content-security-policy": policy } }));
}
