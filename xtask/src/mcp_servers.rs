//! Real MCP servers for the tests: the reference servers from npm, installed once into the target directory.

use std::path::PathBuf;

use crate::{Outcome, prerequisites, step, target_dir};

/// Environment variable that tells the tests where the servers are.
const VARIABLE: &str = "FUSEE_MCP_SERVERS";

const PACKAGES: [&str; 2] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
];

fn folder() -> PathBuf {
    target_dir().join("mcp-servers")
}

/// Installs the servers unless exactly these versions are installed.
pub(crate) fn install() -> Outcome {
    let folder = folder();
    prerequisites::install_once(&folder, &PACKAGES.join("\n"), || {
        prerequisites::npm(&folder, &PACKAGES).map_err(|error| {
            let place = folder.display();
            format!(
                "{error}; tests with real MCP servers need the npm registry or an installation in {place}"
            )
        })
    })
}

/// Runs the tests that need the servers; they are ignored by a plain `cargo nextest run`.
pub(crate) fn test() -> Outcome {
    step::ignored_tests("tests with real MCP servers", &["mcp_servers"], (VARIABLE, folder()))
}
