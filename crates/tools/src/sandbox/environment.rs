//! The variables a command sees: an allow list, because what a user's environment holds is not known.

use std::ffi::{OsStr, OsString};

/// Names that pass. Toolchains need to find their files, nothing needs more.
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

/// Parts of names that never pass, whoever allows them.
const SECRET: [&str; 8] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS", "AUTH"];

/// No command asks anything, pages anything or colours anything: nobody is there to see it.
const FIXED: [(&str, &str); 6] = [
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // In a sandbox a workspace and the repository above it are mounts of their own.
    ("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1"),
];

/// Set unless the user's environment says otherwise.
///
/// Python takes compiled code for that of a source file of the same second and length. A model that changes a digit and
/// runs the tests at once would be shown how they went before.
const UNLESS_SET: [(&str, &str); 2] = [("PATH", DEFAULT_PATH), ("PYTHONDONTWRITEBYTECODE", "1")];

const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The variables a command sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Of these variables, the ones every command may see.
    pub fn allowed(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self::allowed_with(variables, &[])
    }

    /// The same with more names allowed. A name that looks like a secret's does not pass even so.
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

    /// The same with these as well, by the user's word.
    #[must_use]
    pub fn with(mut self, more: impl IntoIterator<Item = (String, String)>) -> Self {
        for (name, value) in more {
            self.variables.retain(|(known, _)| *known != *name);
            self.variables.push((name.into(), value.into()));
        }
        self.variables.sort();
        self
    }

    /// One of them.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }

    /// What a command gets.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl Default for Environment {
    /// What a command gets when nothing is known about the user's.
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

/// Whether a variable of this name holds a secret, going by the name.
#[must_use]
pub fn looks_secret(name: &str) -> bool {
    name.to_ascii_uppercase().split('_').any(|part| SECRET.contains(&part) || part.ends_with("APIKEY"))
}

#[cfg(test)]
mod tests;
