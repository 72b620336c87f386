//! What exists beside the program: tasks, workflows and tools a workflow may call. The caller fills it; the checker
//! reads it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::param::Param;

/// The prefix of the product's own tools, which is also written `system_`.
const SYSTEM: &str = "system:";

/// Whether a name is run by the task system or by the toolbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallableKind {
    /// A template or a registered workflow.
    Task,
    /// A tool.
    Tool,
}

/// One thing that can be called by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Callable {
    /// Its own name, which effects carry.
    pub name: String,
    /// Who runs it.
    pub kind: CallableKind,
    /// What it takes.
    pub params: Vec<Param>,
    /// Whether it takes others too.
    pub open: bool,
}

impl Callable {
    /// A task with these parameters and no others.
    pub fn task(name: impl Into<String>, params: impl Into<Vec<Param>>) -> Self {
        Self { name: name.into(), kind: CallableKind::Task, params: params.into(), open: false }
    }

    /// A tool with these parameters and no others.
    pub fn tool(name: impl Into<String>, params: impl Into<Vec<Param>>) -> Self {
        Self { name: name.into(), kind: CallableKind::Tool, params: params.into(), open: false }
    }
}

/// Everything a workflow may call, by name.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    by_name: BTreeMap<String, Arc<Callable>>,
}

impl Catalog {
    /// An empty catalog.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a callable under its name; a later one of the same name replaces it.
    pub fn add(&mut self, callable: Callable) {
        self.by_name.insert(one_spelling(&callable.name), Arc::new(callable));
    }

    /// Adds another name for a callable that is there already.
    pub fn alias(&mut self, alias: &str, name: &str) {
        if let Some(callable) = self.find(name).cloned() {
            self.by_name.insert(one_spelling(alias), callable);
        }
    }

    /// The callable of this name; `system:x` and `system_x` are one.
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
