//! Real MCP servers for the tests: the reference servers from npm, installed once into the target directory.

use std::path::PathBuf;

use crate::{Outcome, root, step, target_dir};

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
    let (folder, wanted) = (folder(), PACKAGES.join("\n"));
    let installed = folder.join("installed");
    if std::fs::read_to_string(&installed).is_ok_and(|known| known == wanted) {
        return Ok(());
    }
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let place = folder.display().to_string();
    let settings = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", &place];
    step::run("MCP servers", "npm", settings.into_iter().chain(PACKAGES)).map_err(|error| {
        format!("{error}; tests with real MCP servers need the npm registry or an installation in {place}")
    })?;
    std::fs::write(&installed, wanted).map_err(failed)
}

/// Runs the tests that need the servers; they are ignored by a plain `cargo nextest run`.
pub(crate) fn test() -> Outcome {
    step::timed("tests with real MCP servers", || {
        let tests = [
            "nextest",
            "run",
            "--locked",
            "-p",
            "fusee-cli",
            "--test",
            "mcp_servers",
            "--run-ignored",
            "only",
        ];
        let status = std::process::Command::new(step::cargo())
            .args(tests)
            .arg("--config-file")
            .arg(root().join("xtask/nextest.toml"))
            .env(VARIABLE, folder())
            .current_dir(root())
            .status()
            .map_err(|error| format!("cargo nextest: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("tests with real MCP servers failed ({status})")) }
    })
}
