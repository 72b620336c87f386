//! Only one process at a time works on a run, and the lock ends with the process however that ends.

use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use fusee_journal::{Branch, DurableRun, Journal, JournalOptions, RunStatus, SqliteRun, StepKind};
use serde_json::Value;

use crate::kit::*;

/// Another process that works on run `r`.
struct Other {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Other {
    #[expect(clippy::disallowed_methods, reason = "the test starts a child process")]
    fn start(place: &Place, test: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", &format!("locking::{test}"), "--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        writeln!(child.stdin.as_mut().expect("a pipe"), "{}", place.path().display()).expect("told");
        let said = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, said }
    }

    /// Waits until the process has printed this line.
    fn says(&mut self, what: &str) {
        assert!(
            self.said.by_ref().map_while(Result::ok).any(|line| line.contains(what)),
            "it ended before `{what}`"
        );
    }

    /// Kills the process immediately and returns the rest of its output.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
        self.said.map_while(Result::ok).collect()
    }
}

fn told_journal() -> Journal {
    let mut path = String::new();
    std::io::stdin().read_line(&mut path).expect("a path");
    Journal::open(path.trim().as_ref(), JournalOptions::default(), clock()).expect("it opens")
}

#[tokio::test]
#[ignore = "the other process of the tests below"]
async fn hold_a_run_until_killed() {
    let journal = told_journal();
    let engine = begin(&journal, "r").await;
    engine.emit(&Branch::main(), message("committed"));
    engine.flush().await.expect("committed");
    println!("holding");
    std::future::pending().await
}

#[tokio::test]
async fn a_run_of_another_process_is_refused_and_freed_by_kill_9() {
    let place = Place::new();
    let mut holder = Other::start(&place, "hold_a_run_until_killed");
    holder.says("holding");
    let journal = place.open();
    let output = format!(
        "run r is in use by another process (pid {}); wait for it or stop it first",
        holder.child.id()
    );
    let refused = SqliteRun::resume(&journal, &run("r")).err().expect("it is held");
    assert_eq!(refused.to_string(), output);
    let refused = SqliteRun::begin(&journal, &run("r"), "").await.err().expect("it is held");
    assert_eq!(refused.to_string(), output);
    // Reading needs no lock, and other runs are not locked.
    assert_eq!(texts(&journaled(&journal, "r")), ["committed"]);
    begin(&journal, "other").await.finish(RunStatus::Completed).await.expect("ended");

    holder.kill();
    let engine = resume(&journal, "r");
    engine.finish(RunStatus::Completed).await.expect("ended");
    assert_eq!(std::fs::read_dir(place.directory().join("locks")).expect("a directory").count(), 0);
}

#[tokio::test]
async fn a_second_handle_in_one_process_is_refused_too() {
    let place = Place::new();
    let (one, other) = (place.open(), place.open());
    let engine = begin(&one, "r").await;
    for journal in [&one, &other] {
        let refused = SqliteRun::resume(journal, &run("r")).err().expect("it is held").to_string();
        assert_eq!(
            refused,
            format!(
                "run r is in use by another process (pid {}); wait for it or stop it first",
                std::process::id()
            )
        );
    }
    drop(engine);
    resume(&other, "r");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_that_reach_for_a_run_one_has_it() {
    let place = Place::new();
    let journal = place.open();
    begin(&journal, "r").await;
    let reaching: Vec<_> = (0..8)
        .map(|_| {
            let journal = journal.clone();
            std::thread::spawn(move || {
                let mut had = 0;
                for _ in 0..200 {
                    if let Ok(engine) = SqliteRun::resume(&journal, &run("r")) {
                        let others = SqliteRun::resume(&journal, &run("r"));
                        assert!(others.is_err(), "two have it");
                        had += 1;
                        drop(engine);
                    }
                }
                had
            })
        })
        .collect();
    let had: usize = reaching.into_iter().map(|thread| thread.join().expect("it ends")).sum();
    assert!(had > 0);
}

#[tokio::test]
#[ignore = "the other process of the test below"]
async fn work_until_killed() {
    let journal = told_journal();
    let engine = begin(&journal, "r").await;
    for n in 0.. {
        engine.emit(&Branch::main(), message(n.to_string()));
        let shell = call(StepKind::Tool, "shell", Value::Null);
        done(engine.once(shell, intends(n), gives("x".repeat(n % 3000))).await.expect("it runs"));
        // At this point its intent and everything before it is committed.
        println!("\nran {n}");
    }
}

#[tokio::test]
async fn what_was_committed_survives_kill_9_at_any_moment() {
    for round in 0..12 {
        let place = Place::new();
        let mut worker = Other::start(&place, "work_until_killed");
        worker.says(&format!("ran {}", round * 7));
        let rest = worker.kill();
        let last =
            rest.iter().filter_map(|line| line.strip_prefix("ran ")).filter_map(|n| n.parse().ok()).max();
        let ran: usize = last.unwrap_or(round * 7);

        let journal = place.open();
        assert!(journal.check().expect("a check").is_empty());
        let steps = journal.steps(&run("r")).expect("steps");
        assert!(steps.len() > ran, "{ran} ran, {} intents are there", steps.len());
        let (last, before) = steps.split_last().expect("steps");
        assert_eq!(last.result, None, "the result of the last is committed with the next");
        assert!(before.iter().all(|step| step.result.is_some()));
        let events = texts(&journaled(&journal, "r"));
        assert_eq!(events, (0..steps.len()).map(|n| n.to_string()).collect::<Vec<_>>());
        resume(&journal, "r").finish(RunStatus::Cancelled).await.expect("ended");
    }
}

/// Locks of this process on a file, as listed by the kernel. A file on another file system may have the same
/// inode number.
fn kernel_locks(path: &std::path::Path) -> Vec<String> {
    let inode = format!(":{} ", std::fs::metadata(path).expect("a file").ino());
    let all = std::fs::read_to_string("/proc/locks").expect("Linux");
    let process = format!(" {} ", std::process::id());
    let ours = all.lines().filter(|line| line.contains(&inode) && line.contains(&process));
    ours.filter_map(|line| line.split_once(": ")).map(|(_, lock)| lock.to_owned()).collect()
}

#[tokio::test]
async fn opening_a_second_handle_gives_up_no_lock_of_the_first() {
    // When a process closes any descriptor of a file, the kernel drops all its locks on that file. SQLite
    // accounts for this, so we must not open the file ourselves: without the lock, another process may remove
    // the WAL.
    let place = Place::new();
    let _first = place.open();
    // The kernel's list can miss an entry or show one twice while other processes lock and unlock.
    let before = (0..100).map(|_| kernel_locks(&place.path())).find(|locks| locks.len() == 1);
    let before = before.expect("a lock");
    drop(place.open());
    drop(Journal::open_to_read(&place.path(), clock()).expect("readable"));
    // A lock that was released does not come back.
    let found = (0..100).any(|_| kernel_locks(&place.path()) == before);
    assert!(found, "{before:?} is gone");
}
