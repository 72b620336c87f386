//! `cargo xtask test`: runs all tests; the last line is nextest's summary.

use std::io::{BufRead, BufReader, IsTerminal};
use std::process::{Command, Stdio};

use crate::{
    Outcome, attack, bench_tools, language_servers, mcp_servers, prerequisites, protocol_peers, real_model,
    restate, root, step, web,
};

/// Runs unit and integration tests, then the suites with a real model, real MCP servers and a real browser, and doc tests;
/// all run even if the first fail.
pub(crate) fn run(filter: &[String]) -> Outcome {
    prerequisites::ensure(prerequisites::TEST)?;
    let mut summary = None;
    let mut results = vec![step::timed("tests", || nextest(filter, &mut summary))];
    if filter.is_empty() {
        results.extend([
            real_model::install().and_then(|()| real_model::test()),
            mcp_servers::install().and_then(|()| mcp_servers::test()),
            web::install().and_then(|()| web::test()),
            step::run("doc tests", step::cargo(), ["test", "--doc", "--workspace", "--locked", "--quiet"]),
        ]);
    }
    for failure in results.iter().filter_map(|result| result.as_ref().err()) {
        eprintln!("xtask: {failure}");
    }
    println!("{}", summary.unwrap_or_else(|| "no tests were run".to_owned()).trim());
    // Already reported above: the summary must be the last line in any case.
    results.into_iter().collect::<Outcome>().map_err(|_| String::new())
}

/// Installs what a suite needs and runs it.
type Suite = fn() -> Outcome;

/// Runs the suites of these names, or all of them: those with programs of others that `run` leaves out.
pub(crate) fn suites(names: &[String]) -> Outcome {
    let suites: [(&str, Suite); 7] = [
        ("model", || real_model::install().and_then(|()| real_model::test())),
        ("protocols", || protocol_peers::install().and_then(|()| protocol_peers::test())),
        ("diagnostics", || language_servers::install().and_then(|()| language_servers::test())),
        ("bench", || bench_tools::install().and_then(|()| bench_tools::test())),
        ("browser", || web::install().and_then(|()| web::test())),
        ("restate", || restate::install().and_then(|()| restate::test())),
        ("attack", attack::test),
    ];
    if let Some(unknown) = names.iter().find(|name| !suites.iter().any(|(known, _)| known == name)) {
        let known = suites.map(|(name, _)| name).join(", ");
        return Err(format!("unknown suite `{unknown}`; suites are {known}"));
    }
    let chosen =
        suites.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|given| given == name));
    let results: Vec<Outcome> = chosen.map(|(_, run)| run()).collect();
    results.into_iter().collect()
}

fn nextest(filter: &[String], summary: &mut Option<String>) -> Outcome {
    let colour = if std::io::stderr().is_terminal() { "always" } else { "never" };
    let mut child = Command::new(step::cargo())
        .args(["nextest", "run", "--workspace", "--locked", "--color", colour, "--config-file"])
        .arg(root().join("xtask/nextest.toml"))
        .args(filter)
        .current_dir(root())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cargo nextest: {error}"))?;
    // Pass lines through as they come, and keep the summary for the end.
    for line in child.stderr.take().map(BufReader::new).into_iter().flat_map(BufReader::lines) {
        let line = line.map_err(|error| format!("cargo nextest: {error}"))?;
        eprintln!("{line}");
        if without_colour(&line).trim_start().starts_with("Summary [") {
            *summary = Some(without_colour(&line));
        }
    }
    let status = child.wait().map_err(|error| format!("cargo nextest: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("tests failed ({status})")) }
}

fn without_colour(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line.split('\u{1b}');
    plain.push_str(rest.next().unwrap_or_default());
    for part in rest {
        plain.push_str(part.split_once('m').map_or("", |(_, text)| text));
    }
    plain
}
