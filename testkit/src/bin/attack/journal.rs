//! Damages journals: flipped bits, truncation, zeroed pages, in the database, its log and the marks beside them.
//! Whatever is damaged, no command runs twice, and what is shown is either complete or an error.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::Finding;
use crate::arena::{Arena, LIMIT};

/// Number of times the same journal is damaged.
const DAMAGES: usize = 8;

/// Size of a page of the database, and of a frame of its log without its header.
const PAGE: usize = 4096;

/// Size of the log's header, and of a frame with its header.
const LOG_HEADER: usize = 32;
const FRAME: usize = 24 + PAGE;

pub(crate) fn case(arena: &Arena, random: &mut Rng) -> Result<(), Finding> {
    let project = arena.project();
    let commands = random.usize(2..6);
    let stopped_at = random.bool().then(|| random.usize(0..commands));
    record(arena, &project, commands, stopped_at)?;
    let before = Saved::create(&project)?;
    let shown = arena.run(&project, &["show", "last", "--json"])?.stdout;
    for _ in 0..DAMAGES {
        before.restore(&project)?;
        let damage = Damage::new(random);
        let what = damage.apply(&project, random)?;
        let checked = check(arena, &project, commands, &shown);
        checked
            .map_err(|finding| format!("{commands} commands, killed at {stopped_at:?}, {what}: {finding}"))?;
    }
    Ok(())
}

/// Records a run; one that is stopped is killed in the middle of that command.
fn record(
    arena: &Arena,
    project: &Project,
    commands: usize,
    stopped_at: Option<usize>,
) -> Result<(), Finding> {
    let line = |n: usize| {
        let rest = if Some(n) == stopped_at { "; echo > ready; sleep 600" } else { "" };
        Line::call("shell", json!({ "command": format!("echo {n} >> effects{rest}") }))
    };
    let lines: Vec<Line> = (0..commands).map(line).chain([Line::text("Done.")]).collect();
    let model = project.script(&lines);
    let mut live = arena.start(project, &["run", "x", "--model", &model, "--sandbox", "off"])?;
    if stopped_at.is_none() {
        let ran = live.wait(LIMIT)?.judged()?;
        return if ran.code == Some(0) { Ok(()) } else { Err(ran.wrong("did not complete")) };
    }
    let begun = Instant::now();
    while !project.dir().join("ready").exists() {
        if begun.elapsed() > LIMIT || live.child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return Err("the run to be killed did not get to its command".to_owned());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    kill_process(Pid::from_child(&live.child), Signal::KILL).map_err(|error| format!("kill: {error}"))?;
    live.wait(LIMIT).map(drop)
}

/// The files of a journal and the effects of its commands. They are restored in place: a copy of a journal is
/// not the user's own.
struct Saved {
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Saved {
    fn create(project: &Project) -> Result<Self, Finding> {
        let mut files = Vec::new();
        for path in
            [file(project, ""), file(project, "-wal"), file(project, "-marks"), project.dir().join("effects")]
        {
            if path.exists() {
                let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                files.push((path, bytes));
            }
        }
        Ok(Self { files })
    }

    fn restore(&self, project: &Project) -> Result<(), Finding> {
        let _ = fs::remove_file(file(project, "-shm"));
        for (path, bytes) in &self.files {
            write(path, bytes)?;
        }
        Ok(())
    }
}

fn file(project: &Project, ending: &str) -> PathBuf {
    let mut path = project.journal().into_os_string();
    path.push(ending);
    path.into()
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Finding> {
    let opened = OpenOptions::new().write(true).create(true).truncate(true).open(path);
    opened.and_then(|mut file| file.write_all(bytes)).map_err(|error| format!("{}: {error}", path.display()))
}

/// How a journal is damaged.
struct Damage {
    /// Endings of the damaged files. Marks are never damaged together with the others: without them a shorter
    /// journal cannot be told from one that was always short.
    files: &'static [&'static str],
}

impl Damage {
    fn new(random: &mut Rng) -> Self {
        let choices: [&[&str]; 4] = [&[""], &["-wal"], &["-marks"], &["", "-wal"]];
        Self { files: choices[random.usize(0..choices.len())] }
    }

    fn apply(&self, project: &Project, random: &mut Rng) -> Result<String, Finding> {
        let mut said = Vec::new();
        for ending in self.files {
            let path = file(project, ending);
            let mut bytes = fs::read(&path).unwrap_or_default();
            if bytes.is_empty() {
                continue;
            }
            said.push(format!("journal.db{ending}: {}", damage(&mut bytes, ending, random)));
            write(&path, &bytes)?;
        }
        Ok(said.join(", "))
    }
}

fn damage(bytes: &mut Vec<u8>, ending: &str, random: &mut Rng) -> String {
    let length = bytes.len();
    match random.u8(0..5) {
        0 | 1 => {
            let count = random.usize(1..9);
            let bits: Vec<usize> = (0..count).map(|_| random.usize(0..length * 8)).collect();
            bits.iter().for_each(|bit| bytes[bit / 8] ^= 1 << (bit % 8));
            format!("bits {bits:?} of {length} bytes flipped")
        }
        2 => {
            // A log is cut between frames: cut within one, it is the log of a power failure.
            let at = random.usize(0..length);
            let at = if ending == "-wal" { LOG_HEADER + at / FRAME * FRAME } else { at };
            bytes.truncate(at.min(length));
            format!("cut from {length} to {at} bytes")
        }
        3 => {
            let page = random.usize(0..length.div_ceil(PAGE)) * PAGE;
            let end = (page + PAGE).min(length);
            bytes[page..end].fill(0);
            format!("bytes {page} to {end} zeroed")
        }
        _ => {
            let start = random.usize(0..length);
            let end = (start + random.usize(1..2000)).min(length);
            bytes[start..end].iter_mut().for_each(|byte| *byte = random.u8(..));
            format!("bytes {start} to {end} replaced")
        }
    }
}

fn check(arena: &Arena, project: &Project, commands: usize, shown: &str) -> Result<(), Finding> {
    arena.run(project, &["runs"])?;
    let show = arena.run(project, &["show", "last", "--json"])?;
    if show.code == Some(0) && show.stdout != shown {
        return Err(show.wrong("shows something else than before, without an error"));
    }
    arena.run(project, &["replay", "last"])?;
    for _ in 0..2 {
        let resumed = arena.run(project, &["resume"])?;
        let effects = project.read("effects");
        let mut lines: Vec<&str> = effects.lines().collect();
        lines.sort_unstable();
        if lines.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(resumed.wrong(&format!("ran a command twice; effects: {lines:?}")));
        }
        if resumed.code == Some(0) && lines.len() != commands {
            return Err(resumed.wrong(&format!("completed without all commands; effects: {lines:?}")));
        }
    }
    Ok(())
}
