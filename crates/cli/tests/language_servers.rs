//! Errors after an edit from published language servers. `cargo xtask suites diagnostics` installs them from npm and runs
//! these tests; a plain test run lists them as ignored.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test panics when it fails, and does not go through the product's seams"
)]

use std::ffi::OsString;
use std::time::Duration;

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

/// Results of the calls in a run with the servers on the PATH; each check may take long, because the machine may be busy.
fn results(project: &Project, calls: Vec<Line>, flags: &[&str]) -> Vec<String> {
    let servers = std::env::var_os("FUSEE_LANGUAGE_SERVERS")
        .expect("FUSEE_LANGUAGE_SERVERS: run `cargo xtask suites diagnostics`, which installs them");
    let mut path: OsString = std::path::PathBuf::from(servers).join("node_modules/.bin").into();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = "diagnostics = { mode = \"on\", timeout_s = 60 }\n";
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    let mut lines = calls;
    lines.push(Line::text("Done."));
    let script = project.script(&lines);
    let command = project.command(env!("CARGO_BIN_EXE_fusee")).env("PATH", path);
    let command = command.args(["run", "x", "--json", "--model", &script]).args(flags);
    let events = command.limit(Duration::from_secs(300)).run().exits(0).events();
    let text = |result: &&Value| result["content"].as_str().unwrap().to_owned();
    of_type(&events, "tool_result").iter().map(text).collect()
}

#[test]
#[ignore = "needs pyright; run `cargo xtask suites diagnostics`"]
fn pyright_reports_only_new_errors() {
    for flags in [&["--sandbox", "off"][..], &[]] {
        let project = Project::new().with("a.py", "def f(x: int) -> int:\n    return x\n\n\nf(\"old\")\n");
        let calls = vec![
            Line::call("read_file", json!({"path": "a.py"})),
            Line::call(
                "edit_file",
                json!({"path": "a.py", "old": "    return x", "new": "    return \"x\""}),
            ),
            Line::call("edit_file", json!({"path": "a.py", "old": "\"x\"", "new": "x"})),
            Line::call("write_file", json!({"path": "b.py", "content": "import a\n\na.missing()\n"})),
        ];
        let results = results(&project, calls, flags);
        let (_, new) =
            results[1].split_once("errors that were not there before this edit:").expect(&results[1]);
        assert!(new.contains("a.py:2:12: ") && new.contains("\"int\""), "{new}");
        assert!(!new.contains("a.py:5"), "the error that was there before: {new}");
        assert!(!results[2].contains("errors that were not there"), "{}", results[2]);
        assert!(results[3].contains("b.py:3:3: ") && results[3].contains("missing"), "{}", results[3]);
    }
}

#[test]
#[ignore = "needs typescript-language-server; run `cargo xtask suites diagnostics`"]
fn typescript_errors_are_reported() {
    let project = Project::new()
        .with("tsconfig.json", "{\"compilerOptions\": {\"strict\": true}}\n")
        .with("a.ts", "export const n: number = 1;\n");
    let calls = vec![
        Line::call("read_file", json!({"path": "a.ts"})),
        Line::call("edit_file", json!({"path": "a.ts", "old": "= 1", "new": "= \"one\""})),
    ];
    let results = results(&project, calls, &["--sandbox", "off"]);
    assert!(
        results[1].contains("a.ts:1:14: Type 'string' is not assignable to type 'number'."),
        "{}",
        results[1]
    );
}
