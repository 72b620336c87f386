//! Models that run in this process: their settings, and the error if no file is named.

use std::path::Path;
use std::time::Duration;

use fusee_engine::model::{Connection, has_local_models};

use super::{ModelSelection, catalogs};
use crate::cli::environment::Environment;
use crate::cli::error::CliError;
use crate::config::{Config, ModelEntry};

/// The prefix before the colon.
pub(super) const WORD: &str = "local";

impl ModelSelection {
    /// The model in a file. It has no server and no key; its profile and price are looked up by file name.
    pub(super) fn in_process(
        name: &str,
        path: &Path,
        entry: Option<&ModelEntry>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, CliError> {
        let file = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let profile = catalogs::profile(Some(WORD), &file, environment)?;
        let asked = config.context_tokens().or(entry.and_then(|entry| entry.context_tokens));
        let context_tokens = asked.or(profile.context_tokens);
        let settings = Connection {
            traits: profile.traits(),
            silence: Duration::from_secs(config.limits().timeout_s),
            context_tokens,
            ..Connection::default()
        };
        let price = config.price().or(catalogs::price(Some(WORD), &file, environment)?);
        Ok(Self { name: name.to_owned(), settings, context_tokens, price, provider: None, profile })
    }
}

/// Expands `~/` in `local:~/FILE`, which shells do not expand after a colon.
pub(super) fn at_home(name: &str, environment: &Environment) -> String {
    let rest = name.strip_prefix(WORD).and_then(|rest| rest.strip_prefix(":~/"));
    match (rest, environment.variable("HOME")) {
        (Some(rest), Some(home)) => format!("{WORD}:{}", Path::new(home).join(rest).display()),
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
