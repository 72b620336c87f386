//! The tasks, workflows and tools that a workflow may call. The caller fills the catalog; the checker reads
//! it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::param::Param;

/// Prefix of built-in tools; `system_` is an alternative spelling.
const SYSTEM: &str = "system:";

/// Whether a callable is a task or a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallableKind {
    /// A template or a registered workflow.
    Task,
    /// A tool, called directly.
    Tool,
}

/// A task, workflow or tool that can be called by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Callable {
    /// Canonical name, which effects carry even if an alias was called.
    pub name: String,
    /// Whether the task system or the tools run it.
    pub kind: CallableKind,
    /// Declared parameters.
    pub params: Vec<Param>,
    /// Whether it also accepts arguments that are not declared.
    pub open: bool,
}

impl Callable {
    /// A task that takes exactly these parameters.
    pub fn task(name: impl Into<String>, params: impl Into<Vec<Param>>) -> Self {
        Self { name: name.into(), kind: CallableKind::Task, params: params.into(), open: false }
    }

    /// A tool that takes exactly these parameters.
    pub fn tool(name: impl Into<String>, params: impl Into<Vec<Param>>) -> Self {
        Self { name: name.into(), kind: CallableKind::Tool, params: params.into(), open: false }
    }
}

/// All callables of a workflow by name.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    by_name: BTreeMap<String, Arc<Callable>>,
}

impl Catalog {
    /// An empty catalog.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a callable under its name, replacing an earlier one of the same name.
    pub fn add(&mut self, callable: Callable) {
        self.by_name.insert(one_spelling(&callable.name), Arc::new(callable));
    }

    /// Adds another name for an existing callable; does nothing if `name` is unknown.
    pub fn alias(&mut self, alias: &str, name: &str) {
        if let Some(callable) = self.find(name).cloned() {
            self.by_name.insert(one_spelling(alias), callable);
        }
    }

    /// Looks up a callable; `system:x` and `system_x` are the same name.
    pub fn find(&self, name: &str) -> Option<&Arc<Callable>> {
        let found = self.by_name.get(name);
        found.or_else(|| name.starts_with(SYSTEM).then(|| self.by_name.get(&one_spelling(name)))?)
    }

    /// All names, aliases included.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

fn one_spelling(name: &str) -> String {
    match name.strip_prefix(SYSTEM) {
        Some(rest) => format!("system_{rest}"),
        None => name.to_owned(),
    }
}
