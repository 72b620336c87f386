//! Benchmarks and the tools of others: Harbor's validator and harness, and a browser for the report. `cargo xtask suites`
//! installs them and runs these tests.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test panics when it fails, and does not go through the product's seams"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::json;

fn tools() -> PathBuf {
    std::env::var_os("FUSEE_BENCH_TOOLS").expect("FUSEE_BENCH_TOOLS is set by cargo xtask suites").into()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    out.into_owned()
}

/// A job of two variants on four demo cases, one of which one variant solves.
fn job(project: &Project) {
    let solution = repository().join("crates/bench/demo/bus-times/.meta/example.py");
    let solution = std::fs::read_to_string(solution).unwrap();
    let good = project.script(&[
        Line::call("read_file", json!({"path": "missing.py"}))
            .reasoning("Look around <first> & think.")
            .usage(900, 40),
        Line::call("write_file", json!({"path": "bus_times.py", "content": solution})).usage(1000, 200),
        Line::text("Done: \u{fc}n\u{ee}c\u{f6}de <b>&amp;</b>").usage(1300, 20),
        Line::text("Nothing more to do.").usage(1500, 20),
    ]);
    let bad = project.script(&[Line::call("shell", json!("not json")), Line::text("No."), Line::text("No.")]);
    project
        .command(env!("CARGO_BIN_EXE_fusee"))
        .args([
            "bench",
            "run",
            "demo",
            "-m",
            &good,
            "-m",
            &bad,
            "--out",
            "out",
            "--limit",
            "4",
            "--attempts",
            "2",
        ])
        .limit(Duration::from_secs(240))
        .run()
        .exits(0);
}

#[test]
#[ignore = "needs the harbor package: cargo xtask suites bench"]
fn trajectories_are_accepted_by_harbors_validator() {
    let project = Project::new();
    job(&project);
    let staged = project.script(&[
        Line::call("list_dir", json!({"path": "."})),
        Line::text("Looked."),
        Line::call("plan_tasks", json!({"action": "create", "tasks": [{"title": "Write"}]})),
        Line::text("Planned."),
        Line::call("write_file", json!({"path": "x.txt", "content": "x\n"})),
        Line::text("Done."),
    ]);
    // Whatever becomes of it, its trajectory is valid.
    project
        .command(env!("CARGO_BIN_EXE_fusee"))
        .args(["run", "Write x.", "-m", &staged, "--flow", "staged3", "--run-id", "staged"])
        .run();
    project
        .command(env!("CARGO_BIN_EXE_fusee"))
        .args(["bench", "export", "staged", "-o", "staged.json"])
        .run()
        .exits(0);
    let mut files = vec![project.dir().join("staged.json")];
    files.extend(project.all_files().into_iter().filter(|file| file.ends_with("trajectory.json")));
    assert_eq!(files.len(), 17);
    let validate = "import sys\nfrom harbor.utils.trajectory_validator import TrajectoryValidator\nfor file in sys.argv[1:]:\n    \
                    validator = TrajectoryValidator()\n    assert validator.validate(file), (file, validator.errors)\n\
                    print(len(sys.argv) - 1)\n";
    let python = tools().join("venv/bin/python");
    let output = Command::new(python).args(["-c", validate]).args(&files).output().unwrap();
    assert_eq!(succeeded(&output).trim(), "17");
}

#[test]
#[ignore = "needs the harbor package: cargo xtask suites bench"]
fn harbor_runs_fusee_on_three_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(tools().join("venv/bin/python"))
        .arg(repository().join("integrations/harbor/tests/run_tasks.py"))
        .arg(folder.path())
        .env("FUSEE_BINARY", env!("CARGO_BIN_EXE_fusee"))
        .output()
        .unwrap();
    let said = succeeded(&output);
    for agent in ["class", "acp"] {
        assert!(said.contains(&format!("{agent}: three tasks, rewards {{")), "{said}");
    }
}

#[test]
#[ignore = "needs a browser: cargo xtask suites bench"]
fn the_report_is_readable_in_a_browser_and_on_paper() {
    let project = Project::new();
    job(&project);
    project.command(env!("CARGO_BIN_EXE_fusee")).args(["bench", "report", "out"]).run().exits(0);
    let output = Command::new("node")
        .arg(repository().join("crates/cli/tests/browser/report.mjs"))
        .arg(project.dir().join("out/report.html"))
        .arg(tools())
        .env("NODE_PATH", tools().join("node_modules"))
        .current_dir(tools())
        .output()
        .unwrap();
    let said = succeeded(&output);
    assert!(said.contains("report is readable"), "{said}");
}
