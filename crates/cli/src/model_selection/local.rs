//! Models that run in this process: their file names, and the error if no file is named.

use std::path::Path;

use fusee::engine::model::connection::LOCAL;
use fusee::engine::model::has_local_models;

use crate::process::environment::Environment;
use crate::process::error::CliError;

/// Expands `~/` in `local:~/FILE`, which shells do not expand after a colon.
pub(super) fn expand_home(name: &str, environment: &Environment) -> String {
    let rest = name.strip_prefix(LOCAL).and_then(|rest| rest.strip_prefix(":~/"));
    match (rest, environment.variable("HOME")) {
        (Some(rest), Some(home)) => format!("{LOCAL}:{}", Path::new(home).join(rest).display()),
        _ => name.to_owned(),
    }
}

/// The hint about local models for users without a model; empty in a binary without support.
pub(super) fn offered() -> &'static str {
    if has_local_models() { "  run fusee -m local:FILE.gguf for a model file without a server\n" } else { "" }
}

/// The error for `-m local` without a file.
pub(super) fn nothing_named() -> CliError {
    CliError::usage("`local` needs a model file")
        .help("pass -m local:PATH.gguf, or name it in the configuration:\n[models.local]\nmodel = \"local:PATH.gguf\"")
}

#[cfg(test)]
mod tests;
