//! `cargo xtask test`: runs all tests; the last line is nextest's summary.

use std::io::{BufRead, BufReader, IsTerminal};
use std::process::{Command, Stdio};

use crate::{Outcome, mcp_servers, prerequisites, protocol_peers, real_model, root, step};

/// Runs unit and integration tests, those with a real model, real MCP servers and protocol peers, then doc tests; all
/// run even if the first fail.
pub(crate) fn run(filter: &[String]) -> Outcome {
    prerequisites::ensure(prerequisites::TEST)?;
    let mut summary = None;
    let tests = step::timed("tests", || nextest(filter, &mut summary));
    let real =
        if filter.is_empty() { real_model::install().and_then(|()| real_model::test()) } else { Ok(()) };
    let servers =
        if filter.is_empty() { mcp_servers::install().and_then(|()| mcp_servers::test()) } else { Ok(()) };
    let peers = if filter.is_empty() {
        protocol_peers::install().and_then(|()| protocol_peers::test())
    } else {
        Ok(())
    };
    let docs = if filter.is_empty() {
        step::run("doc tests", step::cargo(), ["test", "--doc", "--workspace", "--locked", "--quiet"])
    } else {
        Ok(())
    };
    for failure in
        [&tests, &real, &servers, &peers, &docs].into_iter().filter_map(|result| result.as_ref().err())
    {
        eprintln!("xtask: {failure}");
    }
    println!("{}", summary.unwrap_or_else(|| "no tests were run".to_owned()).trim());
    // Already reported above: the summary must be the last line in any case.
    tests.and(real).and(servers).and(peers).and(docs).map_err(|_| String::new())
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
