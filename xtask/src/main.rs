//! `cargo xtask COMMAND`: development commands, each of which first installs the tools it needs.
//!
//! [`prerequisites`] knows the tools and where to get them, [`step`] runs a command and prints its duration; each
//! command is a file. The figures of `bench` are measured by the test kit's `bench` program, which is only
//! built and started here.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a development command prints, reads the environment and starts other programs"
)]

mod attack;
mod bench;
mod bench_tools;
mod book;
mod dist;
mod eval;
mod language_servers;
mod lint;
mod load;
mod local;
mod mcp_servers;
mod prerequisites;
mod protocol_peers;
mod real_model;
mod restate;
mod simulate;
mod step;
mod test;
mod web;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "Usage: cargo xtask COMMAND

  test [FILTER…]  Run all tests and doc tests; arguments are passed to `cargo nextest run`
  suites [NAME…]  Run suites with programs of others: model, protocols, diagnostics, bench, browser, restate, attack; not part of `test`
  lint            Check formatting, dependencies, clippy, documentation, its site and fuzz targets
  local           Run the tests of the in-process model (feature `local`); compiles llama.cpp
  ci              Run what CI runs: lint, then test
  docs            Regenerate the reference pages and schemas
  book            Build the documentation site and check its links
  dist [--check]  Build a tarball and a .deb; with --check twice, and compare
  web [--check]   Build the page of `fusee serve`; with --check, compare with what is committed
  bench [NAME…]   Measure figures against their targets; names select figures
  simulate        Print the sizing table of docs/scale.md, from a model of many runs on an engine
  load [--runs N] [--turns N] [--model-ms N]
                  Measure many runs at the same time: on a Restate server, its floor, and the embedded engine
  kills [--kills N] [--runs N] [--seed S]
                  Kill workers and the Restate server at random while runs work
  attack [--minutes N] [--seed S]
                  Attack the binary at random; a finding says how to reproduce it
  eval COMMAND    Run exercises with a real model, by Fusee and by other tools: check, peers, run, report";

/// The error is a message for the terminal.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next();
    let rest: Vec<String> = args.collect();
    let wants_help = rest.iter().any(|arg| matches!(arg.as_str(), "--help" | "-h"));
    let outcome = match command.as_deref() {
        // `test` and `eval` hand their arguments on to programs with a help of their own.
        Some(name) if wants_help && !matches!(name, "test" | "eval") => {
            println!("{USAGE}");
            Ok(())
        }
        Some("test") => test::run(&rest),
        Some("suites") => test::suites(&rest),
        Some("lint") => lint::run(),
        Some("local") => local::run(),
        Some("ci") => step::run("ci", root().join(".ci/run"), [""; 0]),
        Some("docs") => docs(),
        Some("book") => book::run(),
        Some("dist") => dist::run(&rest),
        Some("web") => web::run(&rest),
        Some("bench") => bench::run(&rest),
        Some("simulate") => simulate::run(),
        Some("load") => load::load(&rest),
        Some("kills") => load::kills(&rest),
        Some("eval") => eval::run(&rest),
        Some("attack") => attack::run(&rest),
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

/// Generates the pages and schemas with the binary; the event schema comes from a test of its crate.
fn docs() -> Outcome {
    step::run("pages", step::cargo(), ["run", "--quiet", "--package", "fusee-cli", "--", "__docs", "."])
}

/// Root of the repository. Cargo passes it when it runs xtask; the path known at build time may belong to
/// another checkout that shares the target directory.
fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.parent().unwrap_or(&here).to_owned()
}

/// Cargo's target directory.
fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
