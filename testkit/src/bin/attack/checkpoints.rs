//! Kills aimed at a WAL checkpoint: the binary is killed before, in the middle of or after a write to the database
//! file, which is only written to when SQLite moves its log there. The run is then resumed.

use fastrand::Rng;
use fusee_testkit::kill_injection::{KillInjector, KillTime};
use fusee_testkit::script::Line;
use serde_json::json;

use crate::Finding;
use crate::arena::{Arena, LIMIT};

/// Size of each command's output. A checkpoint is due after about four megabytes.
const OUTPUT: usize = 700_000;

/// Number of commands; enough for a checkpoint.
const COMMANDS: usize = 9;

/// Number of moments at which the same run is killed.
const KILLS: usize = 3;

pub(crate) fn case(arena: &Arena, random: &mut Rng) -> Result<(), Finding> {
    let injector = KillInjector::build();
    let count = {
        let project = arena.project();
        let (command, trace) = injector.watch(run(arena, &project));
        command.limit(LIMIT).run().exits(0);
        trace.letters()
    };
    let moments: Vec<usize> = count
        .char_indices()
        .filter(|(_, letter)| letter.is_ascii_uppercase())
        .map(|(at, _)| at + 1)
        .collect();
    if moments.is_empty() {
        return Err(format!("no checkpoint in a run of {} journal writes", count.len()));
    }
    for _ in 0..KILLS {
        let project = arena.project();
        let moment = moments[random.usize(0..moments.len())];
        let when = [KillTime::Before, KillTime::After, KillTime::Torn][random.usize(0..3)];
        injector.kill_at(run(arena, &project), moment, when).limit(LIMIT).run();
        let resumed = arena.run(&project, &["resume"])?;
        let what = format!("killed {when:?} write {moment} of {}", count.len());
        if resumed.code != Some(0) {
            return Err(resumed.wrong(&format!("does not resume after being {what}")));
        }
        let effects = project.read("effects");
        if !are_right(&effects, resumed.stderr.contains("interrupted")) {
            return Err(resumed.wrong(&format!("after being {what}, effects are {effects:?}")));
        }
        let shown = arena.run(&project, &["show"])?;
        if shown.code != Some(0) {
            return Err(shown.wrong(&format!("fails after being {what}")));
        }
    }
    Ok(())
}

/// Whether every command ran once. A checkpoint can be due when the intent of a command is committed: a command that
/// was killed then, before it ran, is not run again, and the model is told that it was interrupted.
fn are_right(effects: &str, is_interrupted: bool) -> bool {
    let ran: Vec<usize> = effects.lines().filter_map(|line| line.parse().ok()).collect();
    let in_order = ran.windows(2).all(|pair| pair[0] < pair[1]) && ran.len() == effects.lines().count();
    in_order && ran.len() + usize::from(is_interrupted) >= COMMANDS && ran.len() <= COMMANDS
}

/// A run whose results, which the journal keeps, are large.
fn run<'p>(
    arena: &Arena,
    project: &'p fusee_testkit::project::Project,
) -> fusee_testkit::project::Command<'p> {
    let write = |n: usize| {
        let text: String = (0..OUTPUT / 12).map(|line| format!("{n:03}{line:08}\n")).collect();
        Line::call("write_file", json!({ "path": format!("large-{n}"), "content": text }))
            .and_call("shell", json!({ "command": format!("echo {n} >> effects") }))
    };
    let lines: Vec<Line> = (0..COMMANDS).map(write).chain([Line::text("Done.")]).collect();
    let model = project.script(&lines);
    project.command(arena.program()).args([
        "run",
        "x",
        "--model",
        &model,
        "--sandbox",
        "off",
        "--max-tokens",
        "100000000",
    ])
}
