//! Catalogs of profiles and prices: built in, overridden by the user's own files.

use std::io;

use fusee::engine::model::{Prices, Profile, Profiles};

use crate::process::environment::Environment;
use crate::process::error::CliError;

/// Maximum size of a catalog file.
const MAX_BYTES: u64 = 1 << 20;

/// The profile of a model.
pub(crate) fn profile(
    provider: Option<&str>,
    model: &str,
    environment: &Environment,
) -> Result<Profile, CliError> {
    let mut profiles = Profiles::builtin_for(provider)?;
    if let Some((name, text)) = own_file("profiles.toml", environment)? {
        profiles.add(&name, &text)?;
    }
    Ok(profiles.resolve(provider, model))
}

/// The built-in prices, overridden by the user's `prices.toml`.
pub(crate) fn prices(environment: &Environment) -> Result<Prices, CliError> {
    let mut prices = Prices::builtin()?;
    if let Some((name, text)) = own_file("prices.toml", environment)? {
        prices.add(&name, &text)?;
    }
    Ok(prices)
}

/// Name and text of a file in the user's configuration folder, if it exists.
pub(super) fn own_file(name: &str, environment: &Environment) -> Result<Option<(String, String)>, CliError> {
    let Some(path) = environment.config_folder().map(|folder| folder.join(name)) else { return Ok(None) };
    let shown = path.display().to_string();
    let wrong = |why: String| CliError::usage(format!("cannot read {shown}: {why}"));
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(found) if found.len() > MAX_BYTES => return Err(wrong("larger than 1 MiB".to_owned())),
        _ => {}
    }
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some((shown, text))),
        Err(error) => Err(wrong(error.to_string())),
    }
}
