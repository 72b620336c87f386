//! The only place that reads the environment: variables, the current directory, and which standard streams
//! are terminals. Everything else takes an [`Environment`], so tests can pass their own.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use fusee::engine::model::Secret;

use crate::process::error::CliError;

/// Environment of the process.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<OsString, OsString>,
    directory: PathBuf,
    terminals: Terminals,
}

/// Columns of the terminal on stdout, or those that the variable COLUMNS says; `None` if there is neither.
#[expect(clippy::disallowed_methods, reason = "the only place that may read the environment")]
pub(crate) fn columns() -> Option<usize> {
    let said =
        std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    let size = || rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
    said.or_else(|| size().filter(|columns| *columns > 0))
}

/// Which of the standard streams are terminals.
#[derive(Clone, Copy, Default)]
pub(crate) struct Terminals {
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
}

impl Environment {
    /// The real environment, read once.
    #[expect(clippy::disallowed_methods, reason = "the only place that may read the environment")]
    pub(crate) fn of_this_process() -> Result<Self, CliError> {
        let directory = std::env::current_dir().map_err(|error| {
            CliError::usage(format!("cannot use the current directory: {error}"))
                .help("change to another directory")
        })?;
        let terminals = Terminals {
            stdin: std::io::stdin().is_terminal(),
            stdout: std::io::stdout().is_terminal(),
            stderr: std::io::stderr().is_terminal(),
        };
        Ok(Self { variables: std::env::vars_os().collect(), directory, terminals })
    }

    /// An environment with these variables, for tests.
    #[cfg(test)]
    pub(crate) fn from_variables(variables: &[(&str, &str)], directory: impl Into<PathBuf>) -> Self {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, directory: directory.into(), terminals: Terminals::default() }
    }

    /// A variable; an empty one counts as unset.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// A variable that is valid UTF-8.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.variable(name).and_then(OsStr::to_str)
    }

    /// A variable that holds an API key.
    pub(crate) fn secret(&self, name: &str) -> Option<Secret> {
        self.text(name).map(|value| Secret::new(value.trim()))
    }

    /// Name and value of each variable, as the process was started with.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.variables.iter()
    }

    /// The file with the cookies of X11 displays, if there is one.
    pub(crate) fn x_authority(&self) -> Option<PathBuf> {
        let named = self.text("XAUTHORITY").map(PathBuf::from);
        let usual = || self.text("HOME").map(|home| Path::new(home).join(".Xauthority"));
        named.or_else(usual).filter(|file| file.is_file())
    }

    /// The current directory at start.
    pub(crate) fn directory(&self) -> &PathBuf {
        &self.directory
    }

    /// Which streams are terminals.
    pub(crate) fn terminals(&self) -> Terminals {
        self.terminals
    }

    /// The user's configuration folder for fusee; `None` without a home directory.
    pub(crate) fn config_folder(&self) -> Option<PathBuf> {
        self.base_folder("XDG_CONFIG_HOME", ".config")
    }

    /// The user's state folder for fusee; `None` without a home directory.
    pub(crate) fn state_folder(&self) -> Option<PathBuf> {
        self.base_folder("XDG_STATE_HOME", ".local/state")
    }

    /// The user's cache folder for fusee; `None` without a home directory.
    #[cfg(feature = "restate")]
    pub(crate) fn cache_folder(&self) -> Option<PathBuf> {
        self.base_folder("XDG_CACHE_HOME", ".cache")
    }

    fn base_folder(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        // The XDG specification requires relative paths to be ignored.
        let given = self.variable(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let base =
            given.or_else(|| self.variable("HOME").map(|home| PathBuf::from(home).join(below_home)))?;
        Some(base.join("fusee"))
    }
}
