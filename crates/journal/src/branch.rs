//! Branches: the position of steps within a run. Evaluation is sequential within a branch; each child task,
//! stage and `pmap` element opens its own branch.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A path of branch names, such as `main` or `main/2`. Also the id of the task that runs on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Branch(Arc<str>);

impl Branch {
    /// The branch every run starts on.
    pub fn main() -> Self {
        Self(Arc::from("main"))
    }

    /// A child branch of this one.
    #[must_use]
    pub fn child(&self, name: impl fmt::Display) -> Self {
        Self(Arc::from(format!("{}/{name}", self.0)))
    }

    /// A branch beside this one, for questions that come up while the body of a step runs. A replay runs no bodies, so it
    /// does not reach the steps of such a branch.
    #[must_use]
    pub fn aside(&self, name: impl fmt::Display) -> Self {
        self.child(format_args!("~{name}"))
    }

    /// Whether it is a branch beside another, or below one.
    pub(crate) fn is_aside(&self) -> bool {
        self.0.contains("/~")
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Branch {
    fn from(path: &str) -> Self {
        Self(Arc::from(path))
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
