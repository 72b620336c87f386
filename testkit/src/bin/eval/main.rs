//! `cargo xtask eval`: measures how many exercises a model solves with Fusee and with other tools.
//!
//! `suite` reads a folder of exercises in exercism's layout and `check` verifies it. `trial` runs one tool
//! (`method`) on one exercise in a `working_copy` and judges the result by the exercise's own tests; `proxy` counts
//! the requests and tokens on their way to the server, in the same way for every tool. `results` keeps one file
//! per trial, `statistics` compares them in pairs, `table` prints them. `plain` is the simplest method: one request.
//! `peers` installs the other tools.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a development command prints, reads the environment and starts other programs"
)]

mod check;
mod language;
mod method;
mod peers;
mod plain;
mod process;
mod proxy;
mod results;
mod statistics;
mod suite;
mod table;
mod trial;
mod working_copy;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use process::Confinement;
use suite::{Selection, Suite};

/// The error is a message for the terminal.
type Outcome<T = ()> = Result<T, String>;

/// Measure how many exercises a model solves with Fusee and with other tools.
#[derive(Parser)]
#[command(name = "cargo xtask eval", bin_name = "cargo xtask eval")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Verify that every reference solution passes its tests and every stub fails them
    Check {
        #[command(flatten)]
        selection: Selection,
        /// Run tests without bubblewrap
        #[arg(long)]
        unconfined: bool,
    },
    /// Run methods on exercises and print the table; trials that have a result are skipped
    Run(Box<trial::Options>),
    /// Print the table of existing results
    Report {
        /// Folder of results
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        #[command(flatten)]
        selection: Selection,
    },
    /// Install aider, mini-swe-agent and goose, each into its own folder
    Peers {
        /// Folder to install into
        #[arg(long, value_name = "DIR")]
        peers: PathBuf,
    },
    /// Send one request and write the files of the reply: the method `plain`
    #[command(hide = true)]
    Plain(plain::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Check { selection, unconfined } => {
            Suite::read(&selection).and_then(|suite| check::run(&suite, Confinement::new(unconfined)?))
        }
        Command::Run(options) => trial::run(&options),
        Command::Report { out, selection } => {
            Suite::read(&selection).and_then(|suite| table::print(&out, &suite))
        }
        Command::Peers { peers } => peers::install(&peers),
        Command::Plain(options) => plain::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("eval: {message}");
            ExitCode::FAILURE
        }
    }
}
