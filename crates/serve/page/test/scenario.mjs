// What the tests in a browser share: one browser, a project for each test, and scripted replies.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browser as launch, open, Project } from "./site.mjs";

let browser;
before(async () => (browser = await launch()));
after(async () => await browser?.close());

export const call = (name, args, more = {}) => ({ tool_calls: [{ name, arguments: args }], ...more });
export const text = (text, more = {}) => ({ text, ...more });

export const GREET = `<task name="greet" type="atomic">
  <description>Greets someone, as often as needed</description>
  <inputs>
    <input name="who">Name of the person</input>
    <input name="times" type="number" default="1"/>
    <input name="loud" type="boolean" default="false"/>
  </inputs>
  <instructions>Greet {{who}} {{times}} times.</instructions>
</task>`;

/// Runs a test with a project of its own. Fails if a page reported a problem.
export const scenario = (name, work) =>
  test(name, { timeout: 240_000 }, async (t) => {
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
    } catch (error) {
      const last = pages.at(-1);
      if (last) error.message += `\n${last.url()}\n${(await last.evaluate(() => document.body.innerText).catch(String)).slice(0, 2000)}`;
      throw error;
    } finally {
      for (const page of pages) await page.context().close();
      await project.end();
    }
  });

/// Numbers of the rows that the transcript has, from top to bottom.
export const numbers = (page) => page.$$eval(".row[data-seq]", (rows) => rows.map((row) => Number(row.dataset.seq)));

/// Id of the run whose page is shown.
export const runOf = (page) => new URL(page.url()).pathname.split("/").pop();
