//! kill -9 at every journal write and at random times: the resumed run completes, and no effect happens
//! twice.

use std::time::Duration;

use fusee_testkit::events::{Part, of_type, read_checked};
use fusee_testkit::kill_injection::{KillInjector, KillTime};
use fusee_testkit::project::{Command, Outcome, Project};
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{fusee, run_json};

/// Three commands whose effects show when they happen twice, with file changes in between.
fn script(project: &Project, pause: &str) -> String {
    let append = |word: &str| json!({"command": format!("{pause}echo {word} >> effects.txt")});
    project.script(&[
        Line::call("write_file", json!({"path": "notes.txt", "content": "alpha\nbeta\n"})).usage(100, 10),
        Line::call("shell", append("one")).usage(200, 10),
        Line::call("edit_file", json!({"path": "notes.txt", "old": "beta", "new": "gamma"})).usage(300, 10),
        Line::call("read_file", json!({"path": "notes.txt"}))
            .and_call("shell", append("two"))
            .and_call("write_file", json!({"path": "made.txt", "content": "made\n"}))
            .usage(400, 10),
        Line::call("shell", append("three")).with_text("The last one.").usage(500, 10),
        Line::text("All done.").usage(600, 10),
    ])
}

fn start<'p>(project: &'p Project, script: &str) -> Command<'p> {
    run_json(project, script).args(["--run-id", "sweep"])
}

fn resume(project: &Project) -> Command<'_> {
    fusee(project).args(["resume", "sweep", "--json"])
}

/// Resumes a killed run to its end and checks the result.
fn finishes(project: &Project, script: &str, kills: usize, case: &str) {
    project.assert_no_process_left();
    let resumed = resume(project).run();
    if resumed.code == Some(2) {
        // Killed before the run was journaled: then nothing may have happened, and it can be started again.
        for file in ["effects.txt", "notes.txt", "made.txt"] {
            assert!(
                !project.dir().join(file).exists(),
                "{case}: {file} of a run that was never begun: {resumed:#?}"
            );
        }
        start(project, script).run().exits(0);
    } else {
        assert_eq!(resumed.code, Some(0), "{case}: {resumed:#?}");
        resumed.events_after_resume();
    }
    is_whole(project, kills, case);
}

/// Asserts that each kill interrupted at most the one command that was running.
fn is_whole(project: &Project, kills: usize, case: &str) {
    let shown = fusee(project).args(["show", "sweep", "--json"]).run().exits(0);
    let events = read_checked(&shown.stdout, Part::Whole);
    let last = events.last().unwrap();
    assert_eq!((&last["status"], &last["answer"]), (&json!("completed"), &json!("All done.")), "{case}");
    assert_eq!(project.read("notes.txt"), "alpha\ngamma\n", "{case}");
    assert_eq!(project.read("made.txt"), "made\n", "{case}");
    let interrupted = interrupted_commands(&events);
    assert!(interrupted.len() <= kills, "{case}: more than the command in flight: {interrupted:?}");
    let effects = project.read("effects.txt");
    for word in ["one", "two", "three"] {
        let times = effects.lines().filter(|line| *line == word).count();
        let known = !interrupted.iter().any(|command| command.contains(&format!("echo {word} ")));
        assert!(times == 1 || (!known && times == 0), "{case}: `{word}` happened {times} times: {effects:?}");
    }
    let replayed = fusee(project).args(["replay", "sweep"]).run();
    assert_eq!(replayed.code, Some(0), "{case}: {replayed:#?}");
    project.assert_no_process_left();
}

/// Commands whose results say that they were interrupted; no other tool may be.
fn interrupted_commands(events: &[Value]) -> Vec<String> {
    let calls = of_type(events, "tool_call");
    of_type(events, "tool_result")
        .into_iter()
        .filter(|result| result["fate"] == "interrupted")
        .map(|result| {
            let call = calls.iter().find(|call| call["call_id"] == result["call_id"]).unwrap();
            assert_eq!(call["name"], "shell", "only a command can be interrupted: {call}");
            call["arguments"]["command"].as_str().unwrap().to_owned()
        })
        .collect()
}

/// Number of journal writes of an undisturbed run.
fn writes_of_a_run(killer: &KillInjector) -> usize {
    let project = Project::new();
    let script = script(&project, "");
    let (command, trace) = killer.watch(start(&project, &script));
    command.run().exits(0);
    is_whole(&project, 0, "undisturbed");
    let writes = trace.count();
    // Six replies, two commits each: fewer would mean that the killer does not see the journal.
    assert!(writes >= 12, "only {writes} journal writes were seen: {}", trace.letters());
    writes
}

fn sweep(when: KillTime) {
    let killer = KillInjector::build();
    for n in 1..=writes_of_a_run(&killer) {
        let case = format!("killed {when:?} write {n}");
        let project = Project::new();
        let script = script(&project, "");
        let outcome: Outcome = killer.kill_at(start(&project, &script), n, when).run();
        if outcome.was_killed() {
            outcome.events_until_killed();
        } else {
            // The last writes may disappear when timing merges commits; then the run has completed.
            assert_eq!(outcome.code, Some(0), "{case}: {outcome:#?}");
        }
        finishes(&project, &script, 1, &case);
    }
}

#[test]
fn a_kill_after_any_journal_write_is_survived() {
    sweep(KillTime::After);
}

#[test]
fn a_kill_before_any_journal_write_is_survived() {
    sweep(KillTime::Before);
}

#[test]
fn a_kill_within_any_journal_write_is_survived() {
    sweep(KillTime::Torn);
}

#[test]
fn a_kill_of_the_resumed_run_is_survived_too() {
    let killer = KillInjector::build();
    let writes = writes_of_a_run(&killer);
    let mut random = Random(7);
    for _ in 0..20 {
        let (first, second) = (random.below(writes) + 1, random.below(writes) + 1);
        let case = format!("killed after write {first}, then after write {second} of the resumed run");
        let project = Project::new();
        let script = script(&project, "");
        killer.kill_at(start(&project, &script), first, KillTime::After).run();
        killer.kill_at(resume(&project), second, KillTime::After).run();
        finishes(&project, &script, 2, &case);
    }
}

#[test]
fn a_kill_at_a_random_time_is_survived() {
    let pause = "sleep 0.03; ";
    let project = Project::new();
    let whole = start(&project, &script(&project, pause)).run().exits(0).elapsed;
    let mut random = Random(11);
    for _ in 0..20 {
        let micros = random.below(usize::try_from(whole.as_micros()).unwrap());
        let after = Duration::from_micros(micros.try_into().unwrap());
        let project = Project::new();
        let script = script(&project, pause);
        let running = start(&project, &script).start();
        std::thread::sleep(after);
        running.signal(Signal::KILL);
        running.wait();
        finishes(&project, &script, 1, &format!("killed after {after:?} of {whole:?}"));
    }
}

/// Random numbers with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound.max(1)
    }
}
