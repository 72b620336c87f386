//! `fusee --version`: which binary this is, and which sandbox it finds here.

use fusee::engine::run::ExitStatus;

use super::doctor::{CheckState, sandbox};
use crate::process::Process;
use crate::process::error::CliError;
use crate::process::stdio;

/// Features that can be chosen when the binary is built, and whether this one has them.
const FEATURES: &[(&str, bool)] = &[
    ("acp", cfg!(feature = "acp")),
    ("grammars", cfg!(feature = "grammars")),
    ("local", cfg!(feature = "local")),
    ("mcp", cfg!(feature = "mcp")),
    ("restate", cfg!(feature = "restate")),
    ("serve", cfg!(feature = "serve")),
    ("telemetry", cfg!(feature = "telemetry")),
];

/// Prints the version; with `verbose` also what a bug report needs.
pub(crate) async fn version(verbose: bool, process: &Process) -> Result<ExitStatus, CliError> {
    let mut text = format!("fusee {}\n", env!("CARGO_PKG_VERSION"));
    if verbose {
        let features = FEATURES.iter().filter(|(_, on)| *on).map(|(name, _)| *name);
        let layers = sandbox::check(process).await;
        let layers = layers.iter().filter(|layer| layer.state == CheckState::Ready);
        let lines = [
            ("commit", option_env!("FUSEE_COMMIT").unwrap_or("not recorded").to_owned()),
            ("target", env!("FUSEE_TARGET").to_owned()),
            ("features", listed(features)),
            ("sandbox", listed(layers.map(|layer| layer.name.as_str()))),
        ];
        text.extend(lines.map(|(name, value)| format!("{name:<9} {value}\n")));
    }
    stdio::print(&text)?;
    Ok(ExitStatus::Completed)
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests;
