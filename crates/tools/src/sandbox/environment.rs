//! The environment variables of a command: an allow list, because the user's environment may contain
//! anything.

use std::ffi::{OsStr, OsString};

/// Names that pass: what toolchains need to find their files.
const ALLOWED: [&str; 61] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "HOSTNAME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUSTFLAGS",
    "RUST_BACKTRACE",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "GOFLAGS",
    "GOPROXY",
    "JAVA_HOME",
    "GRADLE_USER_HOME",
    "MAVEN_OPTS",
    "ANDROID_HOME",
    "NVM_DIR",
    "NODE_PATH",
    "NODE_OPTIONS",
    "NPM_CONFIG_PREFIX",
    "PNPM_HOME",
    "YARN_CACHE_FOLDER",
    "BUN_INSTALL",
    "DENO_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONDONTWRITEBYTECODE",
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "GEM_HOME",
    "GEM_PATH",
    "BUNDLE_PATH",
    "RBENV_ROOT",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// Parts of names that never pass, even if allowed explicitly.
const SECRET: [&str; 8] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS", "AUTH"];

/// Fixed values that disable prompts, pagers and colours: commands run without a user at a terminal.
const FIXED: [(&str, &str); 6] = [
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // In a sandbox the workspace and the repository above it are separate mounts.
    ("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1"),
];

/// Defaults for variables that the user's environment does not set.
///
/// Python considers cached bytecode fresh if the source file has the same modification second and length. A
/// model that changes a digit and runs the tests at once would get the previous results.
const UNLESS_SET: [(&str, &str); 2] = [("PATH", DEFAULT_PATH), ("PYTHONDONTWRITEBYTECODE", "1")];

const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The environment variables of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandEnvironment {
    variables: Vec<(OsString, OsString)>,
}

impl CommandEnvironment {
    /// Selects the variables that every command may see.
    pub fn allowed(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self::allowed_with(variables, &[])
    }

    /// Like [`Self::allowed`], with additional names. A name that looks like a secret does not pass even
    /// then.
    pub fn allowed_with(variables: impl IntoIterator<Item = (OsString, OsString)>, also: &[String]) -> Self {
        let mut kept: Vec<(OsString, OsString)> = variables
            .into_iter()
            .filter(|(name, _)| passes(name, also) && FIXED.iter().all(|(fixed, _)| name != fixed))
            .collect();
        for (name, value) in UNLESS_SET {
            if !kept.iter().any(|(known, _)| known == name) {
                kept.push((name.into(), value.into()));
            }
        }
        kept.extend(FIXED.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        kept.sort();
        Self { variables: kept }
    }

    /// Adds or replaces variables that the user has set explicitly.
    #[must_use]
    pub fn with(mut self, more: impl IntoIterator<Item = (String, String)>) -> Self {
        for (name, value) in more {
            self.variables.retain(|(known, _)| *known != *name);
            self.variables.push((name.into(), value.into()));
        }
        self.variables.sort();
        self
    }

    /// The value of a variable.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }

    /// All variables, sorted by name.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl Default for CommandEnvironment {
    /// The environment of a command if nothing of the user's is known.
    fn default() -> Self {
        Self::allowed([])
    }
}

fn passes(name: &OsStr, also: &[String]) -> bool {
    let Some(name) = name.to_str() else { return false };
    let listed =
        ALLOWED.contains(&name) || name.starts_with("LC_") || also.iter().any(|allowed| allowed == name);
    listed && !looks_secret(name)
}

/// Whether the name of a variable suggests that it holds a secret.
#[must_use]
pub fn looks_secret(name: &str) -> bool {
    name.to_ascii_uppercase().split('_').any(|part| SECRET.contains(&part) || part.ends_with("APIKEY"))
}

#[cfg(test)]
mod tests;
