//! A model in this process: what of flags and configuration goes with it, and what to say where no file is named.

use std::path::Path;
use std::time::Duration;

use fusee_engine::model::{Settings, has_local_models};

use super::{Choice, known};
use crate::config::{Config, ModelEntry};
use crate::environment::Environment;
use crate::failure::Failure;

/// What stands before the colon.
pub(super) const WORD: &str = "local";

impl Choice {
    /// The model in a file. It has no server, no key and no price; its profile goes by the file's name.
    pub(super) fn in_process(
        name: &str,
        path: &Path,
        entry: Option<&ModelEntry>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let file = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let profile = known::profile(Some(WORD), &file, environment)?;
        let asked = config.context_tokens().or(entry.and_then(|entry| entry.context_tokens));
        let context_tokens = asked.or(profile.context_tokens);
        let settings = Settings {
            traits: profile.traits(),
            silence: Duration::from_secs(config.limits().timeout_s),
            context_tokens,
            ..Settings::default()
        };
        let price = config.price().or(known::price(Some(WORD), &file, environment)?);
        Ok(Self { name: name.to_owned(), settings, context_tokens, price, provider: None, profile })
    }
}

/// `local:~/FILE` with the home folder in it: no shell puts it there behind a colon.
pub(super) fn at_home(name: &str, environment: &Environment) -> String {
    let rest = name.strip_prefix(WORD).and_then(|rest| rest.strip_prefix(":~/"));
    match (rest, environment.variable("HOME")) {
        (Some(rest), Some(home)) => format!("{WORD}:{}", Path::new(home).join(rest).display()),
        _ => name.to_owned(),
    }
}

/// The line about it for whoever has no model, in a binary that has it.
pub(super) fn offered() -> &'static str {
    if has_local_models() { "  fusee -m local:FILE.gguf, a model's file, without a server\n" } else { "" }
}

/// `-m local` says where, and not which.
pub(super) fn nothing_named() -> Failure {
    Failure::usage("`local` is a model inside this process, and no file is named")
        .help("say -m local:PATH.gguf, or name it once in the configuration:\n[models.local]\nmodel = \"local:PATH.gguf\"")
}

#[cfg(test)]
mod tests;
