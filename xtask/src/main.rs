//! `cargo xtask COMMAND`: the project's own commands, each of which first installs what it needs.
//!
//! [`needs`] knows the tools and where they come from, [`stage`] runs a command and says how long it took; each command
//! is a file. The figures of `bench` are measured by the test kit's `bench` program, which is only built and started here.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a developer's command: it prints, reads the environment and starts other programs"
)]

mod bench;
mod effect;
mod lint;
mod local;
mod mcp_servers;
mod needs;
mod real_model;
mod stage;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "cargo xtask COMMAND

  test [FILTER…]  all tests and doc tests; arguments go to `cargo nextest run`
  lint            format, clippy, licences and sources of dependencies
  local           the tests of the model inside the process (feature `local`), which compile llama.cpp
  ci              what the CI runs: lint, then test
  docs            writes the reference pages and schemas anew, from the tables that parse
  bench [NAME…]   figures against their targets; names pick some of them
  effect URL MODEL [WAY…]   ten repair tasks with a real small model, in every way of asking it";

/// What went wrong, in words for the person at the terminal.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next();
    let rest: Vec<String> = args.collect();
    let outcome = match command.as_deref() {
        Some("test") => test::run(&rest),
        Some("lint") => lint::run(),
        Some("local") => local::run(),
        Some("ci") => stage::run("ci", root().join(".ci/run"), [""; 0]),
        Some("docs") => docs(),
        Some("bench") => bench::run(&rest),
        Some("effect") => effect::run(&rest),
        Some("help" | "--help" | "-h") => {
            println!("{USAGE}");
            Ok(())
        }
        Some(other) => Err(format!("unknown command {other:?}\n\n{USAGE}")),
        None => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            if !message.is_empty() {
                eprintln!("xtask: {message}");
            }
            ExitCode::FAILURE
        }
    }
}

/// The pages and schemas come from the binary; the schema of events from its crate's own test.
fn docs() -> Outcome {
    stage::run("pages", stage::cargo(), ["run", "--quiet", "--package", "fusee", "--", "__docs", "."])
}

/// The root of the repository. Cargo tells it when it runs us; what was known when we were built may be another
/// checkout that shares the target directory.
fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.parent().unwrap_or(&here).to_owned()
}
