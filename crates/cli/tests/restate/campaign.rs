//! A random campaign: workers and the server are killed again and again while many runs work. `cargo xtask kills` sets its
//! size and seed; without them it is short.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fastrand::Rng;
use fusee_testkit::project::{Project, Running};
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::engine::{Engine, FUSEE, free_port, fusee};

/// Workers that live at the same time.
const WORKERS: usize = 3;

/// Commands and written files of a run.
const STEPS: usize = 6;

/// Runs that work at the same time.
const TOGETHER: usize = 12;

/// How long the campaign may take for each kill, and in any case.
const LIMIT: Duration = Duration::from_secs(20);

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// A worker and the port it listens on.
struct Place {
    port: u16,
    worker: Running,
}

impl Place {
    fn new(project: &Project, engine: &Engine, port: u16) -> Self {
        let listen = format!("127.0.0.1:{port}");
        let url = engine.url();
        let args = ["worker", "--engine", &url, "--listen", &listen, "--allow-unsandboxed"];
        let worker = project.command(FUSEE).args(args).limit(Duration::from_secs(3600)).start();
        Self { port, worker }
    }

    /// Kills the worker and starts another: at the same address, or at a new one.
    fn replace(&mut self, project: &Project, engine: &Engine, random: &mut Rng) {
        self.worker.signal(Signal::KILL);
        let port = if random.bool() { self.port } else { free_port() };
        *self = Self::new(project, engine, port);
    }
}

/// The script of a run: each command leaves a line outside of the workspace, each file is written once.
fn script(project: &Project, run: usize, random: &mut Rng) -> String {
    let outside = project.home().join("effects");
    let mut lines = Vec::new();
    for step in 0..STEPS {
        let pause = random.u32(0..900);
        let command = format!("echo {run}-{step} >> {}; sleep 0.{pause:03}", outside.display());
        lines.push(Line::call("shell", json!({ "command": command })).delay_ms(random.u64(0..300)));
        let file = json!({"path": format!("files/{step}.txt"), "content": format!("{run} {step}\n")});
        lines.push(Line::call("write_file", file).delay_ms(random.u64(0..300)));
    }
    lines.push(Line::call("shell", json!({"command": "cat files/*.txt"})));
    lines.push(Line::text("Finished."));
    project.script(&lines)
}

#[derive(Default)]
struct Counts {
    ended: usize,
    resumed: usize,
    interrupted: usize,
}

/// Checks a run that has ended.
fn check(run: usize, stdout: &str, counts: &mut Counts) {
    let events: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
    assert_eq!(of("task_complete").len(), 1, "run {run}: one end");
    let results = of("tool_result");
    assert_eq!(results.len(), 2 * STEPS + 1, "run {run}: one result for each call");
    let is_interrupted =
        |result: &&&Value| result["content"].as_str().is_some_and(|text| text.contains("interrupted"));
    let (resumed, interrupted) = (of("task_resumed").len(), results.iter().filter(is_interrupted).count());
    assert!(interrupted <= resumed, "run {run}: {interrupted} interrupted calls in {resumed} takeovers");
    let last = results[2 * STEPS]["content"].as_str().unwrap_or_default();
    // The last command may have been interrupted itself.
    if !last.contains("interrupted") {
        let files: String = (0..STEPS).map(|step| format!("{run} {step}\n")).collect();
        assert!(last.contains(files.trim_end()), "run {run}: all files are there: {last}");
    }
    counts.ended += 1;
    counts.resumed += resumed;
    counts.interrupted += interrupted;
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn random_kills_of_workers_and_the_server_lose_nothing_and_repeat_nothing() {
    let (kills, runs) = (setting("FUSEE_KILLS", 6), setting("FUSEE_KILL_RUNS", 6) as usize);
    let seed = setting("FUSEE_KILL_SEED", 27);
    let mut random = Rng::with_seed(seed);
    let (mut engine, project) = (Engine::start(), Project::new());
    let mut places: Vec<Place> = (0..WORKERS).map(|_| Place::new(&project, &engine, free_port())).collect();
    let models: Vec<String> = (0..runs).map(|run| script(&project, run, &mut random)).collect();
    // Clients are refused until the first worker has registered.
    let begun = Instant::now();
    while fusee(&project, &engine, &["run", "--sandbox", "off", "-m", "script:/nothing", "x"]).run().code
        == Some(4)
    {
        assert!(begun.elapsed() < Duration::from_secs(60), "no worker registers");
    }
    let (mut live, mut next): (Vec<(usize, Running)>, usize) = (Vec::new(), 0);
    let (mut done, mut of_server, mut counts) = (0, 0, Counts::default());
    let begun = Instant::now();
    while counts.ended < runs || done < kills {
        while live.len() < TOGETHER && next < runs {
            let id = format!("r{next}");
            let args = ["run", "--json", "--run-id", &id, "--sandbox", "off", "-m", &models[next], "x"];
            let command = fusee(&project, &engine, &args).limit(Duration::from_secs(600));
            live.push((next, command.start()));
            next += 1;
        }
        std::thread::sleep(Duration::from_millis(random.u64(100..700)));
        if done < kills && counts.ended < runs {
            done += 1;
            let what = random.u32(0..10);
            let place = random.usize(0..WORKERS);
            if what >= 1 {
                places[place].replace(&project, &engine, &mut random);
            }
            if what <= 1 {
                of_server += 1;
                engine.kill_and_restart();
            }
        } else if counts.ended == runs {
            break;
        }
        for place in &mut places {
            // A worker that was started while the server was away has ended with an error.
            if !place.worker.is_running() {
                *place = Place::new(&project, &engine, place.port);
            }
        }
        let ended: Vec<(usize, Running)> = live.extract_if(.., |(_, one)| !one.is_running()).collect();
        for (run, one) in ended {
            check(run, &one.wait().exits(0).stdout, &mut counts);
        }
        let limit = LIMIT * u32::try_from(kills + runs as u64).expect("a count");
        assert!(begun.elapsed() < limit, "seed {seed}: {} of {runs} runs ended", counts.ended);
    }
    let effects = std::fs::read_to_string(project.home().join("effects")).expect("effects");
    let lines: Vec<&str> = effects.lines().collect();
    let once: BTreeSet<&str> = lines.iter().copied().collect();
    assert_eq!(once.len(), lines.len(), "seed {seed}: a command ran twice");
    // What is missing was interrupted before it began.
    let missing = runs * STEPS - lines.len();
    assert!(
        missing <= counts.interrupted,
        "seed {seed}: {missing} missing, {} interrupted",
        counts.interrupted
    );
    println!(
        "seed {seed}: {done} kills ({of_server} of the server), {} of {runs} runs ended, {} takeovers, {} commands \
         interrupted, {} effects, {:.0} s",
        counts.ended,
        counts.resumed,
        counts.interrupted,
        lines.len(),
        begun.elapsed().as_secs_f64(),
    );
}
