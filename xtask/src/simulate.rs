//! `cargo xtask simulate`: a discrete-event model of many runs on an engine, which backs the table of docs/scale.md.
//!
//! A run is a sequence of turns. Each turn waits for the model, works on a worker's processors, and has its entries
//! recorded by the engine. The engine and the workers are stations with a number of servers and a queue; the model is a
//! station with a number of requests that it serves at once. The durations are figures measured on one machine, with
//! their origin in [`Measured`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::Outcome;

/// Figures that were measured; docs/scale.md says how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Time of an engine's processor for one recorded entry, in µs.
    entry_us: u64,
    /// Time of a worker's processor for one turn, in µs.
    turn_us: u64,
    /// Entries of a turn.
    entries: u64,
    /// Bytes of the engine's log per turn.
    log_bytes: u64,
    /// Memory of a worker per run, in KiB.
    run_kib: u64,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    name: &'static str,
    /// Runs that work at the same time.
    concurrent: u64,
    /// Runs to finish.
    runs: u64,
    turns: u64,
    /// Duration of a model's reply, in ms.
    model_ms: u64,
    /// Tokens that a turn reads and writes.
    tokens: u64,
    /// Requests that the model serves at once.
    model_slots: u64,
    /// Processors of the engine and of all workers.
    engine_cores: u64,
    worker_cores: u64,
}

/// What the model says about a scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prediction {
    /// From the first to the last event.
    seconds: f64,
    steps_per_s: f64,
    tokens_per_s: f64,
    runs_per_min: f64,
    /// Median of the time that engine and workers add to a turn, in ms.
    added_ms: f64,
    /// How busy the stations are.
    model: f64,
    engine: f64,
    workers: f64,
}

/// A station with servers and a queue.
struct Station {
    free: u64,
    queue: VecDeque<u64>,
    servers: u64,
    busy_us: u64,
}

impl Station {
    fn new(servers: u64) -> Self {
        Self { free: servers, queue: VecDeque::new(), servers, busy_us: 0 }
    }

    fn utilisation(&self, end_us: u64) -> f64 {
        self.busy_us as f64 / (self.servers * end_us.max(1)) as f64
    }
}

/// Where a run is in its turn.
const STATIONS: usize = 3;
const MODEL: usize = 0;

#[derive(Clone, Copy, Default)]
struct RunState {
    turns: u64,
    turn_began_us: u64,
}

/// Runs a scenario.
pub(crate) fn simulate(scenario: &Scenario, measured: &Measured) -> Prediction {
    let service = [scenario.model_ms * 1000, measured.turn_us, measured.entry_us * measured.entries]
        .map(|us| us.max(1));
    let mut stations = [scenario.model_slots, scenario.worker_cores, scenario.engine_cores].map(Station::new);
    let mut runs = vec![RunState::default(); scenario.concurrent.min(scenario.runs) as usize];
    // Ends of services: time, run, station. Runs start spread over one reply of the model.
    let mut ends: BinaryHeap<Reverse<(u64, u64, usize)>> = BinaryHeap::new();
    let mut arrivals: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    let count = runs.len() as u64;
    (0..count).for_each(|run| arrivals.push(Reverse((run * service[MODEL] / count, run))));
    let (mut started, mut finished, mut now) = (count, 0, 0);
    let mut added = Vec::new();
    loop {
        let next_end = ends.peek().map(|Reverse((at, ..))| *at);
        let next_arrival = arrivals.peek().map(|Reverse((at, _))| *at);
        let (run, station) = match (next_end, next_arrival) {
            (None, None) => break,
            (end, Some(at)) if end.is_none_or(|end| at <= end) => {
                let Some(Reverse((at, run))) = arrivals.pop() else { break };
                now = at;
                runs[run as usize].turn_began_us = now;
                (run, MODEL)
            }
            _ => {
                let Some(Reverse((at, run, station))) = ends.pop() else { break };
                now = at;
                // The next one in the queue takes the place.
                match stations[station].queue.pop_front() {
                    Some(waiting) => begin(&mut stations[station], &mut ends, now, waiting, station, service),
                    None => stations[station].free += 1,
                }
                let next = (station + 1) % STATIONS;
                let state = &mut runs[run as usize];
                if next == MODEL {
                    state.turns += 1;
                    added.push(now - state.turn_began_us - service[MODEL]);
                    state.turn_began_us = now;
                    if state.turns == scenario.turns {
                        finished += 1;
                        if started == scenario.runs {
                            continue;
                        }
                        started += 1;
                        state.turns = 0;
                    }
                }
                (run, next)
            }
        };
        if stations[station].free > 0 {
            stations[station].free -= 1;
            begin(&mut stations[station], &mut ends, now, run, station, service);
        } else {
            stations[station].queue.push_back(run);
        }
    }
    added.sort_unstable();
    let seconds = now as f64 / 1e6;
    let turns = added.len() as f64;
    let [model, workers, engine] = stations.map(|station| station.utilisation(now));
    Prediction {
        seconds,
        steps_per_s: turns * measured.entries as f64 / seconds,
        tokens_per_s: turns * scenario.tokens as f64 / seconds,
        runs_per_min: f64::from(finished) * 60.0 / seconds,
        added_ms: added.get(added.len() / 2).copied().unwrap_or_default() as f64 / 1e3,
        model,
        engine,
        workers,
    }
}

fn begin(
    station: &mut Station,
    ends: &mut BinaryHeap<Reverse<(u64, u64, usize)>>,
    now: u64,
    run: u64,
    index: usize,
    service: [u64; STATIONS],
) {
    station.busy_us += service[index];
    ends.push(Reverse((now + service[index], run, index)));
}

/// Measured by `cargo xtask load` on 2 cores with engine, worker and clients together; docs/scale.md says how.
const MEASURED: Measured =
    Measured { entry_us: 600, turn_us: 3_500, entries: 2, log_bytes: 5_900, run_kib: 750 };

/// The first row is about the load that the figures come from, in which engine and worker share two processors.
const SCENARIOS: [Scenario; 6] = [
    Scenario { model_ms: 200, ..scenario("the load below", 1_000, 1_000, 1_000, 1, 1) },
    scenario("1 run", 1, 20, 1, 1, 1),
    scenario("100 runs", 100, 400, 100, 1, 1),
    // A million runs of 10 turns a day are 116 turns a second, of 5 s each: 579 at the same time.
    scenario("a million a day", 600, 6_000, 600, 1, 1),
    scenario("10 000 runs", 10_000, 20_000, 10_000, 4, 12),
    scenario("10 000 runs, model too small", 10_000, 20_000, 2_000, 4, 12),
];

/// Processors of a machine for workers.
const MACHINE_CORES: u64 = 4;

const fn scenario(
    name: &'static str,
    concurrent: u64,
    runs: u64,
    model_slots: u64,
    engine_cores: u64,
    worker_cores: u64,
) -> Scenario {
    let (turns, model_ms, tokens) = (10, 5_000, 8_000);
    Scenario { name, concurrent, runs, turns, model_ms, tokens, model_slots, engine_cores, worker_cores }
}

/// Prints the table of docs/scale.md.
pub(crate) fn run() -> Outcome {
    println!("{}", table());
    Ok(())
}

/// The table as Markdown.
fn table() -> String {
    let mut text = String::from(
        "| | model slots | engine processors | worker processors | worker machines | entries/s | tokens/s | runs/min | \
         added per turn | busy: model | engine | workers | worker memory | log per day |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for scenario in &SCENARIOS {
        let found = simulate(scenario, &MEASURED);
        let log_bytes = found.runs_per_min * 1_440.0 * (MEASURED.log_bytes * scenario.turns) as f64;
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} | {:.0} | {:.0} | {:.0} | {:.0} ms | {:.0} % | {:.0} % | {:.0} % | {:.1} GiB | \
             {:.0} GiB |\n",
            scenario.name,
            scenario.model_slots,
            scenario.engine_cores,
            scenario.worker_cores,
            scenario.worker_cores.div_ceil(MACHINE_CORES),
            found.steps_per_s,
            found.tokens_per_s,
            found.runs_per_min,
            found.added_ms,
            found.model * 100.0,
            found.engine * 100.0,
            found.workers * 100.0,
            (MEASURED.run_kib * scenario.concurrent) as f64 / (1024.0 * 1024.0),
            log_bytes / (1024.0 * 1024.0 * 1024.0),
        ));
    }
    text
}

#[cfg(test)]
mod tests;
