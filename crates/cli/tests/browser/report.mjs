// Opens a report in Chromium: light and dark, wide and narrow, and as a PDF. Usage: node report.mjs FILE FOLDER
import { createRequire } from "node:module";
import { existsSync, statSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import assert from "node:assert";

const [file, folder] = process.argv.slice(2);
const { chromium } = createRequire(join(folder, "node_modules", "/"))("playwright-core");
const names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
const paths = process.env.PATH.split(":").flatMap((path) => names.map((name) => join(path, name)));
const executablePath = paths.find(existsSync);
assert(executablePath, "no Chromium on PATH (Debian package chromium)");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const seen = {};
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1000, 390]) {
      const page = await browser.newPage({ colorScheme, viewport: { width, height: 900 } });
      const problems = [];
      page.on("console", (message) => problems.push(message.text()));
      page.on("pageerror", (error) => problems.push(String(error)));
      page.on("request", (request) => request.url().startsWith("file:") || problems.push(request.url()));
      await page.goto(pathToFileURL(file).href);
      assert.deepEqual(problems, []);
      const found = await page.evaluate(() => {
        const bars = [...document.querySelectorAll("svg rect")].map((bar) => bar.getBoundingClientRect());
        const outside = [...document.querySelectorAll("svg text")].filter((text) => {
          const [box, around] = [text.getBoundingClientRect(), text.closest("svg").getBoundingClientRect()];
          return box.left < around.left - 1 || box.right > around.right + 1;
        });
        return {
          title: document.title,
          headings: [...document.querySelectorAll("h2")].map((heading) => heading.textContent),
          plots: document.querySelectorAll("svg").length,
          flat: bars.filter((bar) => bar.width <= 0 || bar.height <= 0).length,
          outside: outside.map((text) => text.textContent),
          overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
          background: getComputedStyle(document.body).backgroundColor,
          markup: document.querySelectorAll("main b").length,
        };
      });
      assert.equal(found.overflow, 0, `the page is wider than ${width}`);
      assert.deepEqual(found.outside, [], "texts outside their plots");
      assert.equal(found.flat, 0, "bars without size");
      assert.equal(found.markup, 0, "texts of models are markup");
      assert(found.plots >= 5, `${found.plots} plots`);
      for (const heading of ["Pass rate", "Cost and pass rate", "Turns, tokens and time per trial", "Tool errors", "Cases"]) {
        assert(found.headings.includes(heading), `no section ${heading}`);
      }
      seen[colorScheme] = found.background;
      await page.screenshot({ path: join(folder, `report-${colorScheme}-${width}.png`), fullPage: true });
      await page.close();
    }
  }
  assert.notEqual(seen.light, seen.dark, "both themes look the same");
  const page = await browser.newPage();
  await page.goto(pathToFileURL(file).href);
  await page.pdf({ path: join(folder, "report.pdf"), format: "A4", printBackground: true });
  assert(statSync(join(folder, "report.pdf")).size > 10000);
  console.log("report is readable");
} finally {
  await browser.close();
}
