//! Kills every kind of our processes at random moments: thirty runs at once share a journal, and any of their
//! processes (main process, fork server, supervisor, command) is killed with SIGKILL. Afterwards every run is
//! resumed to its end. No command runs twice, no process is left, and every run can be shown.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use fastrand::Rng;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::Finding;
use crate::arena::{Arena, Live};

/// Number of concurrent runs.
const RUNS: usize = 30;

/// Time limit of a run, with all others on two cores.
const LIMIT: Duration = Duration::from_secs(240);

/// Number of times a run is resumed after the killing is over.
const RESUMES: usize = 4;

pub(crate) fn case(arena: &Arena, random: &mut Rng) -> Result<(), Finding> {
    let project = arena.project();
    let commands = random.usize(2..5);
    let sandbox = if random.bool() { "on" } else { "off" };
    let models: Vec<String> = (0..RUNS).map(|run| script(&project, run, commands, random)).collect();
    let mut live: Vec<(usize, Live)> = Vec::new();
    for (run, model) in models.iter().enumerate() {
        let id = format!("r{run}");
        let words = ["run", "x", "--run-id", &id, "--model", model, "--sandbox", sandbox];
        live.push((run, arena.start(&project, &words)?));
    }
    let kills = random.usize(20..80);
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(random.u64(0..120)));
        let mut mains: Vec<u32> = live.iter().map(|(_, live)| live.child.id()).collect();
        let all = descendants(&mains);
        // Main processes half of the time: they are few beside the others.
        if random.bool() {
            mains = all;
        }
        if let Some(pid) = random.choice(mains).and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        for (run, one) in &mut live {
            let killed =
                one.child.try_wait().is_ok_and(|ended| ended.is_some_and(|status| status.code().is_none()));
            if killed {
                *one = arena.start(&project, &["resume", &format!("r{run}"), "--sandbox", sandbox])?;
            }
        }
    }
    for (_, live) in live {
        let ran = live.wait(LIMIT)?;
        // One that was killed last is resumed below.
        if ran.code.is_some() {
            ran.judged()?;
        }
    }
    for (run, model) in models.iter().enumerate() {
        settle(arena, &project, run, model, sandbox)?;
    }
    for run in 0..RUNS {
        let effects = project.read(&format!("effects-{run}"));
        let mut lines: Vec<&str> = effects.lines().collect();
        lines.sort_unstable();
        if lines.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(format!("r{run} ran a command twice: {lines:?}"));
        }
    }
    let begun = Instant::now();
    while !project.processes().is_empty() {
        if begun.elapsed() > LIMIT {
            return Err(format!("processes are left: {:?}", project.processes()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn script(project: &Project, run: usize, commands: usize, random: &mut Rng) -> String {
    let line = |n: usize| {
        let wait = random.u32(0..60);
        let command = format!("echo {n} >> effects-{run}; sleep 0.0{wait:02}");
        Line::call("shell", json!({ "command": command }))
    };
    let lines: Vec<Line> = (0..commands).map(line).chain([Line::text("Done.")]).collect();
    project.script(&lines)
}

/// Resumes a run until it has ended. One that was killed before it was recorded is started again.
fn settle(arena: &Arena, project: &Project, run: usize, model: &str, sandbox: &str) -> Result<(), Finding> {
    let id = format!("r{run}");
    for _ in 0..RESUMES {
        let resumed = arena.start(project, &["resume", &id, "--sandbox", sandbox])?.wait(LIMIT)?.judged()?;
        if resumed.code == Some(0) {
            let shown = arena.run(project, &["show", &id])?;
            return if shown.code == Some(0) { Ok(()) } else { Err(shown.wrong("cannot show the run")) };
        }
        let is_unknown = resumed.stderr.contains("not found") || resumed.stderr.contains("before it started");
        if is_unknown {
            let words = ["run", "x", "--run-id", &id, "--model", model, "--sandbox", sandbox];
            arena.start(project, &words)?.wait(LIMIT)?.judged()?;
        } else if resumed.code == Some(1) && resumed.stderr.contains("failed") {
            // A run may have ended in failure, because its fork server was killed. It stays ended.
            return Ok(());
        }
    }
    let last = arena.start(project, &["resume", &id])?.wait(LIMIT)?;
    Err(last.wrong("does not end however often it is resumed"))
}

/// All descendants of these processes, and the processes themselves.
fn descendants(mains: &[u32]) -> Vec<u32> {
    let mut parents: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        parents.entry(parent.unwrap_or(0)).or_default().push(pid);
    }
    let mut all = mains.to_vec();
    let mut at = 0;
    while let Some(pid) = all.get(at) {
        all.extend(parents.remove(pid).unwrap_or_default());
        at += 1;
    }
    all
}
