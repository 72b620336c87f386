//! One process works on a run at a time, and the lock ends with the process however that ends.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use fusee_journal::{Branch, Embedded, Engine, RunStatus};

use crate::kit::*;

/// Another process that has begun the run `r` and holds it.
struct Holder(Child);

impl Holder {
    #[expect(clippy::disallowed_methods, reason = "the other process is the test")]
    fn start(place: &Place) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "locking::hold_a_run_until_killed", "--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        writeln!(child.stdin.as_mut().expect("a pipe"), "{}", place.path().display()).expect("told");
        let lines = BufReader::new(child.stdout.as_mut().expect("a pipe")).lines();
        let holding = lines.map_while(Result::ok).any(|line| line.contains("holding"));
        assert!(holding, "the other process has the run");
        Self(child)
    }

    fn kill(mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("gone");
    }
}

#[tokio::test]
#[ignore = "the other process of the tests below"]
async fn hold_a_run_until_killed() {
    let mut path = String::new();
    std::io::stdin().read_line(&mut path).expect("a path");
    let options = fusee_journal::Options::default();
    let journal = fusee_journal::Journal::open(path.trim().as_ref(), options, clock()).expect("it opens");
    let engine = begin(&journal, "r").await;
    engine.emit(&Branch::main(), message("committed"));
    engine.flush().await.expect("committed");
    println!("holding");
    std::future::pending().await
}

#[tokio::test]
async fn a_run_of_another_process_is_refused_and_freed_by_kill_9() {
    let place = Place::new();
    let holder = Holder::start(&place);
    let journal = place.open();
    let told = format!(
        "run r is being worked on by another process (pid {}): wait for it or stop it first",
        holder.0.id()
    );
    let refused = Embedded::resume(&journal, &run("r"), None).err().expect("it is held");
    assert_eq!(refused.to_string(), told);
    let refused = Embedded::begin(&journal, &run("r"), "", None).await.err().expect("it is held");
    assert_eq!(refused.to_string(), told);
    // Reading needs no lock, other runs are free.
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
        let refused = Embedded::resume(journal, &run("r"), None).err().expect("it is held").to_string();
        assert_eq!(
            refused,
            format!(
                "run r is being worked on by another process (pid {}): wait for it or stop it first",
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
                    if let Ok(engine) = Embedded::resume(&journal, &run("r"), None) {
                        let others = Embedded::resume(&journal, &run("r"), None);
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
