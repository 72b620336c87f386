//! `fusee bench`: jobs as a whole: their budget, their folder, their progress, and suites that change while they run.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::{binary, fusee};

/// A suite of three cases that any work solves.
fn project() -> Project {
    let case = |name: &str| format!("[[case]]\nname = \"{name}\"\nprompt = \"Look.\"\nfiles = \"{name}\"\n");
    let cases = ["alpha", "beta", "gamma"];
    let project = Project::new()
        .with("suite/suite.toml", &format!("test = \"true\"\ntimeout_s = 20\n{}", cases.map(case).concat()));
    cases.iter().for_each(|name| project.write(&format!("suite/{name}/note.txt"), "a note\n"));
    project
}

fn bench<'p>(project: &'p Project, args: &[&str]) -> Command<'p> {
    fusee(project).args(["bench"]).args(args).limit(Duration::from_secs(120))
}

fn results(project: &Project, out: &str) -> Vec<Value> {
    let text = project.read(&format!("{out}/results.jsonl"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn look() -> Line {
    Line::call("read_file", json!({"path": "note.txt"}))
}

#[test]
fn a_job_stops_when_its_budget_is_spent_and_no_trial_is_graded_for_that() {
    let project = project();
    let user = project.home().join(".config/fusee");
    fs::create_dir_all(&user).unwrap();
    fs::write(user.join("config.toml"), "[price]\ninput = 10.0\noutput = 100.0\n").unwrap();
    // A turn costs $0.02; the three trials take eight turns of 500 ms each.
    let echo = |n: usize| Line::call("shell", json!({"command": format!("echo {n}")}));
    let mut lines: Vec<Line> = (0..7).map(|n| echo(n).usage(1000, 100).delay_ms(500)).collect();
    lines.push(Line::text("Done.").usage(1000, 100).delay_ms(500));
    let script = project.script(&lines);
    let args =
        ["run", "suite", "-m", &script, "--out", "out", "-n", "3", "--tries", "1", "--budget-usd", "0.12"];
    let stopped = bench(&project, &args).run().exits(1);
    assert!(stopped.stderr.contains("the budget of the job is spent"), "{}", stopped.stderr);
    assert_eq!(results(&project, "out"), Vec::<Value>::new());
    // The same again has nothing to spend, but the runs have stopped at once: about two turns each.
    let listed = fusee(&project).args(["runs", "list", "--all", "--json"]).run().exits(0);
    let listed: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed.len(), 3, "{listed:#?}");
    let done = bench(&project, &["resume", "out", "--budget-usd", "10"]).run().exits(0);
    assert!(done.stdout.contains("passed 3 of 3") && done.stdout.contains("cost $0.48"), "{}", done.stdout);
    for result in results(&project, "out") {
        assert_eq!((&result["cause"], &result["turns"]), (&Value::Null, &json!(8)), "{result:#}");
        assert!((result["cost_usd"].as_f64().unwrap() - 0.16).abs() < 1e-9, "{result:#}");
    }
}

#[test]
fn a_budget_without_a_known_price_is_warned_about_once() {
    let project = project();
    let script = project.script(&[Line::text("Done.").usage(10, 1)]);
    let done =
        bench(&project, &["run", "suite", "-m", &script, "--out", "out", "--budget-usd", "1"]).run().exits(0);
    assert_eq!(done.stderr.matches("do not count towards --budget-usd").count(), 1, "{}", done.stderr);
}

#[test]
fn two_processes_do_not_work_on_one_job() {
    let project = project();
    let script = project.script(&[look().delay_ms(1500), Line::text("Done.").delay_ms(1500)]);
    let args = ["run", "suite", "-m", &script, "--out", "out", "-n", "1", "--json"];
    let mut first = bench(&project, &args).start();
    first.wait_for_stdout("a result", |out| out.lines().count() == 1);
    for args in [&["resume", "out"][..], &args] {
        let second = bench(&project, args).run().exits(2);
        assert!(second.stderr.contains("another process works on the job in"), "{}", second.stderr);
    }
    let first = first.wait();
    assert_eq!(first.code, Some(0), "{first:#?}");
    assert_eq!(results(&project, "out").len(), 3);
    bench(&project, &["resume", "out"]).run().exits(0);
}

#[test]
fn files_that_cannot_be_read_are_located_and_the_rest_runs() {
    let project = project();
    symlink("/nowhere/at/all", project.dir().join("suite/beta/lost.txt")).unwrap();
    let script = project.script(&[look(), Line::text("Done.")]);
    for command in [&["list", "suite"][..], &["check", "suite"]] {
        let told = bench(&project, command).run().exits(1);
        let said = format!("{}{}", told.stdout, told.stderr);
        assert!(said.contains("suite/beta/lost.txt: No such file or directory"), "{said}");
    }
    let done = bench(&project, &["run", "suite", "-m", &script, "--out", "out"]).run().exits(1);
    assert!(done.stderr.contains("suite/beta/lost.txt: No such file or directory"), "{}", done.stderr);
    let found = results(&project, "out");
    let passed: Vec<(&str, bool)> =
        found.iter().map(|it| (it["case"].as_str().unwrap(), it["passed"] == true)).collect();
    assert_eq!(passed, [("alpha", true), ("gamma", true)]);
}

#[test]
fn a_file_that_disappears_while_the_job_runs_costs_one_trial() {
    let project = project();
    let script = project.script(&[look().delay_ms(700), Line::text("Done.").delay_ms(700)]);
    let args = ["run", "suite", "-m", &script, "--out", "out", "-n", "1", "--json"];
    let mut running = bench(&project, &args).start();
    running.wait_for_stdout("a result", |out| out.lines().count() == 1);
    fs::remove_file(project.dir().join("suite/gamma/note.txt")).unwrap();
    let done = running.wait();
    assert_eq!(done.code, Some(1), "{done:#?}");
    let found = results(&project, "out");
    assert_eq!(found.len(), 3);
    assert_eq!((&found[1]["passed"], &found[2]["cause"]), (&json!(true), &json!("verifier_broken")));
    assert!(found[2]["message"].as_str().unwrap().contains("suite/gamma/note.txt: "), "{found:#?}");
    assert_eq!(project.read("out/trials/gamma.1/patch.diff"), "");
}

#[test]
fn a_line_of_results_that_was_cut_off_does_not_hide_the_others() {
    let project = project();
    let script = project.script(&[Line::text("Done.")]);
    bench(&project, &["run", "suite", "-m", &script, "--out", "out"]).run().exits(0);
    let text = project.read("out/results.jsonl");
    project.write("out/results.jsonl", &text[..text.len() - 30]);
    let shown = bench(&project, &["show", "out"]).run().exits(0);
    assert!(shown.stdout.contains("passed 2 of 2"), "{}", shown.stdout);
    // A line in the middle is no accident.
    project.write("out/results.jsonl", &text.replacen('}', "", 1));
    bench(&project, &["show", "out"]).run().exits(2);
}

#[test]
fn a_job_is_not_continued_with_another_agent_file() {
    let project = project().with("careful.toml", "max_turns = 5\n");
    let script = project.script(&[Line::text("Done.")]);
    let args = ["run", "suite", "-m", &script, "--agent", "careful.toml", "--out", "out", "--limit", "1"];
    bench(&project, &args).run().exits(0);
    bench(&project, &["resume", "out"]).run().exits(0);
    project.write("careful.toml", "max_turns = 6\n");
    let refused = bench(&project, &["resume", "out"]).run().exits(2);
    assert!(refused.stderr.contains("careful.toml has changed since the job started"), "{}", refused.stderr);
}

#[test]
fn progress_goes_on_at_a_terminal_and_is_complete_on_a_pipe() {
    let project = project();
    let script = project.script(&[Line::text("Done.").delay_ms(2600)]);
    let terminal = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let args = ["bench", "run", "suite", "-m", &script, "--out", "shown", "-n", "3", "--tries", "1"];
    let shown = project
        .command("python3")
        .args(["-c", terminal, binary()])
        .args(args)
        .env("TERM", "xterm-256color")
        .limit(Duration::from_secs(60))
        .run()
        .exits(0);
    for line in ["  alpha.1  1.", "  alpha.1  2.", "3/3 done, 100 % passed"] {
        assert!(shown.stdout.contains(line), "no `{line}` in {}", shown.stdout);
    }
    let piped =
        bench(&project, &["run", "suite", "-m", &script, "--out", "piped", "-n", "1", "--tries", "1"]);
    let piped = piped.run().exits(0);
    let line = piped.stderr.lines().find(|line| line.starts_with("[1/3] ")).unwrap();
    assert!(line.starts_with("[1/3] passed alpha.1: 1 try, 1 turn, ") && line.ends_with(" left"), "{line}");
    assert!(line.contains("; 100 % passed, "), "{line}");
}
