//! `cargo xtask attack`: a random campaign against the binary, bounded in time and reproducible by its seed.
//!
//! Each attack is a file with a function that runs one case from a random number generator: [`journal`] damages
//! journals, [`kills`] kills every process of concurrent runs, [`checkpoints`] kills at the moments when SQLite moves its
//! log into the database, [`http`] and [`mcp`] are hostile servers that speak what [`grammar`] generates, and [`shell`]
//! generates command lines against rules and executes them. [`arena`] runs the binary in a throwaway project.
//! Everything listens on loopback only and ends with the campaign.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a development command prints, measures time and starts other programs"
)]

mod arena;
mod checkpoints;
mod grammar;
mod http;
mod journal;
mod kills;
mod mcp;
mod shell;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use fastrand::Rng;

use arena::Arena;

/// What is wrong, for the terminal.
type Finding = String;

/// Runs one case of an attack.
type Case = fn(&Arena, &mut Rng) -> Result<(), Finding>;

/// The attacks, and how many cases of each come in a round.
const ATTACKS: [(&str, Case, usize); 6] = [
    ("journal", journal::case, 1),
    ("http", http::case, 4),
    ("mcp", mcp::case, 2),
    ("shell", shell::case, 1),
    ("checkpoints", checkpoints::case, 1),
    ("kills", kills::case, 1),
];

/// After this many findings the campaign ends: more would hardly say more.
const MAX_FINDINGS: usize = 10;

/// Attack the binary at random for some time.
#[derive(Parser)]
#[command(name = "cargo xtask attack", bin_name = "cargo xtask attack")]
struct Arguments {
    /// The binary to attack
    #[arg(long, value_name = "FILE")]
    fusee: PathBuf,
    /// How long to go on; the case that is running then is finished
    #[arg(long, value_name = "N", default_value_t = 30.0)]
    minutes: f64,
    /// Seed of the campaign; the same seed gives the same cases in the same order
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Run only this attack
    #[arg(long, value_name = "ATTACK", value_parser = ATTACKS.map(|(name, _, _)| name))]
    only: Option<String>,
    /// Run only the case with this seed, as a finding names it; needs --only
    #[arg(long, value_name = "SEED", requires = "only")]
    case: Option<u64>,
}

fn main() -> ExitCode {
    // This program is also the hostile MCP server that fusee starts.
    let words: Vec<String> = std::env::args().collect();
    if let [_, word, seed] = words.as_slice()
        && word == mcp::SERVER
    {
        mcp::serve(seed.parse().unwrap_or_default());
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::parse();
    let arena = match Arena::new(&arguments.fusee) {
        Ok(arena) => arena,
        Err(message) => {
            eprintln!("attack: {message}");
            return ExitCode::FAILURE;
        }
    };
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..));
    let chosen =
        ATTACKS.into_iter().filter(|(name, _, _)| arguments.only.as_ref().is_none_or(|only| only == name));
    let chosen: Vec<(&str, Case, usize)> = chosen.collect();
    let mut campaign = Campaign { arena, findings: 0, cases: BTreeMap::new() };
    if let Some(case) = arguments.case {
        chosen.iter().for_each(|(name, run, _)| campaign.run(name, *run, case));
    } else {
        println!("seed {seed}, {} minutes", arguments.minutes);
        campaign.go_on(&chosen, seed, Duration::from_secs_f64(arguments.minutes.max(0.0) * 60.0));
    }
    for (name, (count, time)) in &campaign.cases {
        println!("{name:12} {count:5} cases {:7.1} s", time.as_secs_f64());
    }
    match campaign.findings {
        0 => {
            println!("no findings");
            ExitCode::SUCCESS
        }
        count => {
            println!("{count} findings");
            ExitCode::FAILURE
        }
    }
}

/// A campaign in progress.
struct Campaign {
    arena: Arena,
    findings: usize,
    cases: BTreeMap<&'static str, (usize, Duration)>,
}

impl Campaign {
    fn go_on(&mut self, attacks: &[(&'static str, Case, usize)], seed: u64, time: Duration) {
        let begun = Instant::now();
        let mut seeds = Rng::with_seed(seed);
        loop {
            for (name, run, count) in attacks {
                for _ in 0..*count {
                    let case = seeds.u64(..);
                    if begun.elapsed() >= time || self.findings >= MAX_FINDINGS {
                        return;
                    }
                    self.run(name, *run, case);
                }
            }
        }
    }

    fn run(&mut self, name: &'static str, run: Case, case: u64) {
        let begun = Instant::now();
        let mut random = Rng::with_seed(case);
        // The checks of the test kit panic.
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&self.arena, &mut random)));
        let finding = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(finding)) => Some(finding),
            Err(panic) => Some(message(&*panic)),
        };
        let (count, time) = self.cases.entry(name).or_default();
        *count += 1;
        *time += begun.elapsed();
        if let Some(finding) = finding {
            self.findings += 1;
            println!(
                "FINDING {name}: {finding}\n  reproduce: cargo xtask attack --only {name} --case {case}"
            );
        }
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}
