// schemathesis against the API of the real binary: no request may lead to a server error, and answers have the documented
// shape.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { Project } from "./site.mjs";

test("schemathesis finds no server error", { timeout: 600_000 }, async () => {
  const project = new Project();
  try {
    const replies = Array.from({ length: 400 }, () => ({ text: "Done." }));
    const model = project.script(replies);
    project.write("notes.txt", "one\n");
    await project.run(["run", "Say it.", "-m", model, "--run-id", "first", "--sandbox", "off"]);
    const site = await project.serve(["-m", model, "--max-turns", "1"]);
    const result = spawnSync(
      process.env.SCHEMATHESIS,
      [
        "run", `${site.origin}/api/openapi.json`,
        "--header", `Authorization: Bearer ${site.token}`,
        "--exclude-path-regex", "/stream$",
        "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
        "--max-examples", process.env.EXAMPLES ?? "25",
        "--phases", "examples,coverage,fuzzing",
        "--generation-deterministic",
        "--request-timeout", "20",
        "--no-color",
      ],
      { encoding: "utf8", timeout: 540_000, cwd: project.base },
    );
    assert.equal(result.status, 0, result.stdout + result.stderr);
  } finally {
    await project.end();
  }
});
