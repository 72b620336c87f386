//! A journal that is torn, damaged, full, read-only, shared or from a newer version: a clear error, and no
//! committed data is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fusee_testkit::events::{Part, read_checked};
use fusee_testkit::kill_injection::{KillInjector, KillTime};
use fusee_testkit::project::{Outcome, Project};
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{REQUEST, binary, fusee, run, run_json};

fn appending(count: usize) -> Vec<Line> {
    let line = |n| Line::call("shell", json!({"command": format!("echo {n} >> effects.txt")}));
    (0..count).map(line).chain([Line::text("Done.")]).collect()
}

fn finished(project: &Project, id: &str) {
    run(project, &project.script(&appending(2))).args(["--run-id", id]).run().exits(0);
}

fn log(project: &Project) -> PathBuf {
    project.dir().join(".fusee/journal.db-wal")
}

/// Asserts an orderly failure: an exit code, the journal named, no panic.
#[track_caller]
fn says_what_is_wrong(outcome: &Outcome, words: &[&str]) {
    assert!(matches!(outcome.code, Some(code) if code != 0), "{outcome:#?}");
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    for word in words.iter().chain(&["journal"]) {
        assert!(outcome.stderr.contains(word), "{word:?} is not in:\n{}", outcome.stderr);
    }
}

/// Moves everything into the database file itself, so that a test can damage it.
fn checkpoint(project: &Project) {
    let database = rusqlite::Connection::open(project.journal()).unwrap();
    database.pragma_update(None, "journal_mode", "DELETE").unwrap();
}

fn overwrite(path: &Path, at: usize, bytes: &[u8]) {
    let mut content = fs::read(path).unwrap();
    content[at..at + bytes.len()].copy_from_slice(bytes);
    fs::write(path, content).unwrap();
}

#[test]
fn a_torn_log_loses_only_its_torn_end() {
    let killer = KillInjector::build();
    for share in [3, 2] {
        let project = Project::new();
        let script = project.script(&appending(4));
        let (counted, trace) = killer.watch(run_json(&project, &script));
        counted.run().exits(0);
        let project = Project::new();
        let script = project.script(&appending(4));
        let start = run_json(&project, &script).args(["--run-id", "torn"]);
        killer.kill_at(start, trace.count() * 3 / 4, KillTime::After).run();
        let length = fs::metadata(log(&project)).unwrap().len();
        // A write torn by a power cut: the last frames are missing or incomplete.
        let file = fs::OpenOptions::new().write(true).open(log(&project)).unwrap();
        file.set_len(length - 4096 / share).unwrap();
        let resumed = fusee(&project).args(["resume", "torn", "--json"]).run().exits(0);
        resumed.events_after_resume();
        let shown = fusee(&project).args(["show", "torn", "--json"]).run().exits(0);
        read_checked(&shown.stdout, Part::Whole);
    }
}

#[test]
fn a_file_that_is_no_journal_is_named_and_left_alone() {
    let project = Project::new();
    finished(&project, "good");
    checkpoint(&project);
    overwrite(&project.journal(), 0, &[0x5a; 200]);
    let before = fs::read(project.journal()).unwrap();
    for command in [["runs", "list"], ["show", "good"], ["resume", "good"], ["replay", "good"]] {
        says_what_is_wrong(&fusee(&project).args(command).run(), &["journal.db", "damaged"]);
    }
    let script = project.script(&[Line::text("Done.")]);
    says_what_is_wrong(&run(&project, &script).run(), &["journal.db", "damaged"]);
    assert_eq!(fs::read(project.journal()).unwrap(), before, "the damaged file was changed");
}

#[test]
fn a_damaged_page_is_reported_and_the_rest_is_readable() {
    let project = Project::new();
    for n in 0..6 {
        finished(&project, &format!("run-{n}"));
    }
    checkpoint(&project);
    let pages = fs::read(project.journal()).unwrap().len() / 4096;
    let (mut readable, mut reported) = (0, 0);
    for page in 1..pages {
        let damaged = Project::new();
        fs::create_dir_all(damaged.journal().parent().unwrap()).unwrap();
        fs::copy(project.journal(), damaged.journal()).unwrap();
        overwrite(&damaged.journal(), page * 4096, &[0xa5; 4096]);
        for n in 0..6 {
            let shown = fusee(&damaged).args(["show", &format!("run-{n}"), "--json"]).run();
            assert!(shown.signal.is_none() && !shown.stderr.contains("panicked"), "page {page}: {shown:#?}");
            if shown.code == Some(0) {
                shown.events();
                readable += 1;
            } else {
                reported += 1;
            }
        }
    }
    assert!(readable > 0 && reported > 0, "{readable} runs readable, {reported} reported, of {pages} pages");
}

#[test]
fn a_full_disk_ends_the_run_with_a_word_and_the_run_can_go_on() {
    let project = Project::new();
    let script = project.script(&appending(30));
    // A file size limit stands for the full disk; its signal is ignored, because a full disk sends none.
    let line = format!(
        "trap '' XFSZ; ulimit -f 400; exec {} run '{REQUEST}' --model {script} --sandbox off --run-id full",
        binary()
    );
    let outcome = project.command("sh").args(["-c", &line]).run();
    says_what_is_wrong(&outcome, &["journal.db"]);
    let done = project.read("effects.txt").lines().count();
    assert!(done > 0 && done < 30, "the disk was full after {done} commands");
    let resumed = fusee(&project).args(["resume", "full", "--json"]).run().exits(0);
    resumed.events_after_resume();
    let effects = project.read("effects.txt");
    let missing: Vec<usize> =
        (0..30).filter(|n| !effects.lines().any(|line| line == n.to_string())).collect();
    assert!(missing.len() <= 1, "commands that never ran: {missing:?}");
    let mut lines: Vec<&str> = effects.lines().collect();
    lines.dedup();
    assert_eq!(lines.len(), effects.lines().count(), "a command ran twice: {effects}");
}

#[test]
fn a_read_only_directory_is_named() {
    let project = Project::new();
    finished(&project, "good");
    checkpoint(&project);
    let state = project.journal().parent().unwrap().to_owned();
    let script = project.script(&[Line::text("Done.")]);
    let fusee_as_nobody = Unprivileged::new(&project);
    set_mode(&state, 0o555);
    set_mode(&project.journal(), 0o444);
    let outcome = fusee_as_nobody.run(&["run", REQUEST, "--model", &script]);
    says_what_is_wrong(&outcome, &["journal.db"]);
    let shown = fusee_as_nobody.run(&["show", "good"]);
    set_mode(&state, 0o755);
    assert_eq!(shown.code, Some(0), "a journal that cannot be written can still be read: {shown:#?}");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs the binary as an unprivileged user: root may write anywhere, and CI often runs as root.
struct Unprivileged<'p> {
    project: &'p Project,
    program: PathBuf,
}

impl<'p> Unprivileged<'p> {
    fn new(project: &'p Project) -> Self {
        // The build directory may be inaccessible to other users; the copy is not.
        let program = project.scratch("fusee");
        fs::copy(binary(), &program).unwrap();
        set_mode(program.parent().unwrap(), 0o755);
        Self { project, program }
    }

    fn run(&self, args: &[&str]) -> Outcome {
        let program = self.program.to_str().unwrap();
        let command = if rustix::process::geteuid().is_root() {
            let drop_rights = ["--reuid=65534", "--regid=65534", "--clear-groups", program];
            self.project.command("setpriv").args(drop_rights)
        } else {
            self.project.command(program)
        };
        command.args(args).run()
    }
}

#[test]
fn two_processes_do_not_work_on_one_run() {
    let project = Project::new();
    let script = project.script(&[
        Line::call("shell", json!({"command": "echo x >> effects.txt; sleep 60"})),
        Line::text("Done."),
    ]);
    let mut first = run_json(&project, &script).args(["--run-id", "shared"]).start();
    first.wait_for_stdout("tool_call", |out| out.contains("\"tool_call\""));
    let second = fusee(&project).args(["resume", "shared"]).run().exits(2);
    assert!(second.stderr.contains(&first.id().to_string()), "who has it is not said: {}", second.stderr);
    run_json(&project, &script).args(["--run-id", "shared"]).run().exits(2);
    // Other runs of the project are not affected.
    run(&project, &project.script(&[Line::text("Done.")])).run().exits(0);
    first.signal(Signal::KILL);
    first.wait();
    fusee(&project).args(["resume", "shared"]).run().exits(0);
    assert_eq!(project.read("effects.txt"), "x\n");
}

#[test]
fn many_processes_share_one_journal() {
    let project = Project::new();
    let running: Vec<_> = (0..6)
        .map(|n| {
            run_json(&project, &project.script(&appending(5))).args(["--run-id", &format!("run-{n}")]).start()
        })
        .collect();
    for one in running {
        one.wait().exits(0).events();
    }
    assert_eq!(project.read("effects.txt").lines().count(), 30);
}

#[test]
fn a_journal_of_a_newer_version_is_left_alone() {
    let project = Project::new();
    finished(&project, "good");
    rusqlite::Connection::open(project.journal()).unwrap().pragma_update(None, "user_version", 9999).unwrap();
    let script = project.script(&[Line::text("Done.")]);
    says_what_is_wrong(&run(&project, &script).run(), &["9999", "newer"]);
    says_what_is_wrong(&fusee(&project).args(["resume", "good"]).run(), &["9999", "newer"]);
    let database = rusqlite::Connection::open(project.journal()).unwrap();
    let runs: i64 = database.query_row("SELECT count(*) FROM runs", [], |row| row.get(0)).unwrap();
    assert_eq!(runs, 1);
}

/// A run whose command waits for a file, so that the test can act in the meantime.
fn started_command(project: &Project, id: &str) -> fusee_testkit::project::Running {
    let wait = "echo x > began; while [ ! -e go ]; do sleep 0.05; done";
    let script = project.script(&[
        Line::call("shell", json!({"command": wait})),
        Line::call("shell", json!({"command": "echo y > second"})),
        Line::text("Done."),
    ]);
    let running = run_json(project, &script).args(["--run-id", id]).start();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !project.dir().join("began").exists() {
        assert!(std::time::Instant::now() < until, "the command did not start");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    running
}

#[test]
fn a_journal_removed_during_a_run_ends_it_and_is_saved() {
    let project = Project::new();
    let running = started_command(&project, "gone");
    fs::remove_dir_all(project.dir().join(".fusee")).unwrap();
    project.write("go", "");
    let outcome = running.wait().exits(1);
    assert!(!project.dir().join("second").exists(), "a command ran without a journal");
    let said = &outcome.stdout;
    assert!(said.contains("was removed while the run was active: its content was saved to "), "{said}");
    let rescued: Vec<_> = fs::read_dir(project.home().join(".local/state/fusee/rescued"))
        .unwrap()
        .map(|folder| fs::read_dir(folder.unwrap().path()).unwrap().next().unwrap().unwrap().path())
        .collect();
    fs::create_dir_all(project.journal().parent().unwrap()).unwrap();
    fs::copy(&rescued[0], project.journal()).unwrap();
    fusee(&project).args(["trust", "--yes"]).run().exits(0);
    fusee(&project).args(["resume", "gone", "--json"]).run().exits(0);
    assert!(project.dir().join("second").exists());
}

#[test]
fn a_flipped_bit_in_the_log_is_reported_and_nothing_runs_twice() {
    let killer = KillInjector::build();
    let project = Project::new();
    let script = project.script(&appending(4));
    let (counted, trace) = killer.watch(run_json(&project, &script));
    counted.run().exits(0);
    let project = Project::new();
    let script = project.script(&appending(4));
    let start = run_json(&project, &script).args(["--run-id", "flipped"]);
    killer.kill_at(start, trace.count() * 3 / 4, KillTime::After).run();
    let ran = project.read("effects.txt");
    let whole = fs::read(log(&project)).unwrap();
    // In the middle of the log: everything from there on is lost.
    let at = whole.len() / 2;
    overwrite(&log(&project), at, &[whole[at] ^ 4]);
    for command in [["show", "flipped"], ["resume", "flipped"], ["replay", "flipped"]] {
        says_what_is_wrong(&fusee(&project).args(command).run(), &["damaged", "was longer"]);
    }
    assert_eq!(project.read("effects.txt"), ran, "a command ran twice");
}

#[test]
fn a_run_killed_before_its_settings_were_written_is_passed_over_and_removed() {
    let project = Project::new();
    finished(&project, "good");
    let sql = "INSERT INTO runs (name, title, status, started_ms) VALUES ('dead', 'x', 'open', 1)";
    rusqlite::Connection::open(project.journal()).unwrap().execute(sql, []).unwrap();
    let resumed = fusee(&project).args(["resume"]).run().exits(2);
    assert!(
        resumed.stderr.contains("no open run here: the newest run, good, has ended"),
        "{}",
        resumed.stderr
    );
    fusee(&project).args(["runs", "gc"]).run().exits(0);
    let listed = fusee(&project).args(["runs"]).run().exits(0).stdout;
    assert!(!listed.contains("dead"), "{listed}");
}

#[test]
fn a_fifo_in_place_of_the_journal_or_the_index_does_not_hang() {
    for name in ["journal.db", "memory.idx"] {
        let project = Project::new();
        let fifo = project.dir().join(".fusee").join(name);
        fs::create_dir_all(fifo.parent().unwrap()).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let limit = std::time::Duration::from_secs(60);
        let outcome = match name {
            "journal.db" => run(&project, &project.script(&[Line::text("Done.")])).limit(limit).run(),
            _ => fusee(&project).args(["memory", "query", "parser"]).limit(limit).run(),
        };
        assert!(outcome.stderr.contains("not a regular file"), "{name}: {outcome:#?}");
        assert!(outcome.code.is_some_and(|code| code != 0), "{name}: {outcome:#?}");
    }
}
