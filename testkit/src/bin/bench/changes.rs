//! Cost of change detection: a scan of 50 000 files compared with `git status` on the same tree, alternating;
//! and a turn without a command, which scans nothing, in that tree compared with an empty one.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Figure;
use super::measure::{Programs, Who, Work, median, ms, replies};

const DIRECTORIES: usize = 500;
const FILES: usize = 100;
const ROUNDS: usize = 15;

/// Measures scans, `git status` and turns.
pub(crate) fn cost(programs: &Programs) -> Vec<Figure> {
    let folder = tempfile::tempdir().expect("a folder");
    grow(folder.path());
    git(folder.path(), &["init", "-q"]);
    git(folder.path(), &["add", "-A"]);
    git(folder.path(), &["-c", "user.name=b", "-c", "user.email=b@b", "commit", "-qm", "all"]);
    // Files as recent as the index would have to be read by both.
    std::thread::sleep(Duration::from_millis(1100));
    git(folder.path(), &["status", "--porcelain"]);
    let mut look = Look::start(&programs.look, folder.path());
    let first = look.answer().0;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let changed = format!("d{}/f{round}.txt", round * 7 % DIRECTORIES);
        fs::write(folder.path().join(changed), format!("changed in round {round}\n")).expect("a file");
        let begun = Instant::now();
        git(folder.path(), &["status", "--porcelain"]);
        theirs.push(ms(begun.elapsed()));
        look.ask();
        let (took, changes) = look.answer();
        assert_eq!(changes, 1, "round {round}");
        ours.push(took);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let turn = |files: bool| {
        let calls = replies(40, Work::Reads, Duration::ZERO);
        let ready = programs.ready(Who::Fusee, &calls, &[]);
        if files {
            grow(&ready.directory());
        }
        let run = ready.start().finish();
        median(run.gaps.iter().map(|gap| ms(*gap)).collect())
    };
    let (many, none) = (turn(true), turn(false));
    vec![
        Figure::shown("initial scan of 50 000 files", first, "ms"),
        Figure::shown("git status, 50 000 files", theirs, "ms"),
        Figure::at_most("scan after a command relative to git status", ours / theirs, "x", 1.2),
        Figure::at_most("turn without a command, 50 000 files relative to none", many / none, "x", 1.3),
    ]
}

fn grow(root: &Path) {
    for directory in 0..DIRECTORIES {
        let folder = root.join(format!("d{directory}"));
        fs::create_dir_all(&folder).expect("a directory");
        for file in 0..FILES {
            fs::write(folder.join(format!("f{file}.txt")), format!("file {file} of {directory}\n"))
                .expect("a file");
        }
    }
}

fn git(root: &Path, args: &[&str]) {
    let status = Command::new("git").args(args).current_dir(root).stdout(Stdio::null()).status();
    assert!(status.expect("git").success(), "git {args:?}");
}

/// The `look` example, which scans on request.
struct Look {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Look {
    fn start(program: &Path, directory: &Path) -> Self {
        let mut command = Command::new(program);
        command.arg(directory).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the example `look` was built");
        let said = BufReader::new(child.stdout.take().expect("its stdout"));
        Self { child, said }
    }

    fn ask(&mut self) {
        writeln!(self.child.stdin.as_mut().expect("its stdin")).expect("it listens");
    }

    /// Returns the milliseconds and the number of changed files.
    fn answer(&mut self) -> (f64, usize) {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("an answer");
        let (took, changes) = line.trim().split_once(' ').expect("two numbers");
        (took.parse().expect("milliseconds"), changes.parse().expect("a count"))
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // The program exits when its stdin is closed.
        let _ = self.child.wait();
    }
}
