//! A workflow that is killed at any journal write, or cancelled, and resumed: the same value, and no effect
//! twice.

use std::time::Duration;

use fusee_testkit::events::{Part, of_type, read_checked};
use fusee_testkit::kill_injection::{KillInjector, KillTime};
use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::json;

use crate::support::fusee;

/// Parallel tasks, a loop, a caught failure, and commands whose effects show when they happen twice.
const TEXT: &str = "
(defatom ask (params (n number)) (instructions \"number {{n}}.\"))
(defun note (word) (run_script (command (format \"echo {} >> effects.txt\" word))))
(define answers (pmap (lambda (n) (content (ask (n n)))) (range 0 4) :limit 2))
(define seen 0)
(loop 2 (progn (note (format \"loop{}\" seen)) (set! seen (+ seen 1))))
(define caught
  (try (content (run_script (command \"echo caught >> effects.txt; exit 4\")))
    (catch (e) (error-reason e))))
(write_file (path \"made.txt\") (content (string-join answers \",\")))
(list answers seen caught (content (ask (n 9))))
";

const VALUE: &str =
    "((\"answer 0\" \"answer 1\" \"answer 2\" \"answer 3\") 2 \"tool_execution_error\" \"answer 9\")\n";

fn script(project: &Project) -> String {
    let line = |n: u32| Line::text(&format!("answer {n}")).matching(&format!("number {n}\\.")).usage(10, 1);
    project.script(&[0, 1, 2, 3, 9].map(line))
}

fn start<'p>(project: &'p Project, script: &str) -> Command<'p> {
    fusee(project).args(["task", TEXT, "-m", script, "--sandbox", "off", "--run-id", "sweep"])
}

/// Resumes a killed workflow to its end and checks the result.
fn finishes(project: &Project, script: &str, case: &str) {
    project.assert_no_process_left();
    let resumed = fusee(project).args(["resume", "sweep"]).run();
    if resumed.code == Some(2) {
        // Killed before the run was journaled: then nothing may have happened, and it can be started again.
        assert_eq!(project.read("effects.txt"), "", "{case}: {resumed:#?}");
        start(project, script).run().exits(0);
    }
    is_whole(project, case);
}

fn is_whole(project: &Project, case: &str) {
    let shown = fusee(project).args(["show", "sweep", "--json"]).run().exits(0);
    let events = read_checked(&shown.stdout, Part::Whole);
    let interrupted =
        of_type(&events, "tool_result").iter().filter(|result| result["fate"] == "interrupted").count();
    assert!(interrupted <= 1, "{case}: more than the command in flight: {interrupted}");
    let effects = project.read("effects.txt");
    for word in ["loop0", "loop1", "caught"] {
        let times = effects.lines().filter(|line| *line == word).count();
        assert!(
            times == 1 || (times == 0 && interrupted == 1),
            "{case}: `{word}` {times} times: {effects:?}"
        );
    }
    let last = events.last().unwrap();
    assert_eq!((&last["status"], &last["answer"]), (&json!("completed"), &json!(VALUE.trim_end())), "{case}");
    assert_eq!(project.read("made.txt"), "answer 0,answer 1,answer 2,answer 3", "{case}");
    let replayed = fusee(project).args(["replay", "sweep"]).run();
    assert_eq!((replayed.code, replayed.stdout.as_str()), (Some(0), VALUE), "{case}: {replayed:#?}");
    project.assert_no_process_left();
}

fn sweep(when: KillTime) {
    let killer = KillInjector::build();
    let writes = {
        let project = Project::new();
        let script = script(&project);
        let (command, trace) = killer.watch(start(&project, &script));
        command.run().exits(0);
        is_whole(&project, "undisturbed");
        trace.count()
    };
    assert!(writes >= 12, "only {writes} journal writes were seen");
    for n in 1..=writes {
        let project = Project::new();
        let script = script(&project);
        killer.kill_at(start(&project, &script), n, when).run();
        finishes(&project, &script, &format!("killed {when:?} write {n}"));
    }
}

#[test]
fn a_workflow_survives_a_kill_after_any_journal_write() {
    sweep(KillTime::After);
}

#[test]
fn a_workflow_survives_a_kill_before_any_journal_write() {
    sweep(KillTime::Before);
}

#[test]
fn a_workflow_survives_a_kill_in_the_middle_of_any_journal_write() {
    sweep(KillTime::Torn);
}

#[test]
fn a_cancelled_workflow_goes_on_when_it_is_resumed() {
    let project = Project::new();
    let slow = Line::text("late").matching("number 1\\.").delay_ms(3_000);
    let quick = Line::text("soon").matching("number 0\\.");
    let script = project.script(&[quick, slow]);
    let text = "(defatom ask (params (n number)) (instructions \"number {{n}}.\"))
        (run_script (command \"echo once >> effects.txt\"))
        (pmap (lambda (n) (content (ask (n n)))) (range 0 2))";
    let command =
        fusee(&project).args(["task", text, "-m", &script, "--sandbox", "off", "--json", "--run-id", "c"]);
    let running = command.start();
    let begun = std::time::Instant::now();
    while !project.read("effects.txt").contains("once") && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    running.signal(Signal::INT);
    let cancelled = running.wait().exits(130);
    let result: serde_json::Value = serde_json::from_str(&cancelled.stdout).unwrap();
    assert_eq!(result["status"], json!("FAILED"), "{result:#}");
    assert!(cancelled.stderr.contains("fusee resume c"), "{}", cancelled.stderr);
    let resumed = fusee(&project).args(["resume", "c"]).run().exits(0);
    assert_eq!(resumed.stdout, "(\"soon\" \"late\")\n", "what was cut off is asked again");
    assert_eq!(project.read("effects.txt"), "once\n");
    fusee(&project).args(["replay", "c"]).run().exits(0);
}
