//! The set of tools of a run: lookup by name or alias, and listing in a fixed order.

use std::collections::HashMap;
use std::sync::Arc;

use crate::tool::shell::CommandSettings;
use crate::tool::{Tool, ToolDefinition};
use crate::tool::{apply_patch, edit_file, find_files, list_dir, read_file, search_text, shell, write_file};

/// Names of the standard tools, in order.
const STANDARD: [&str; 11] = [
    "read_file",
    "read_files",
    "list_dir",
    "find_files",
    "search_text",
    "write_file",
    "edit_file",
    "apply_patch",
    "shell",
    "shell_poll",
    "shell_kill",
];

/// Tools by name. Insertion order is the order of the list sent to a model, so that the list is stable.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    index: HashMap<String, usize>,
}

impl Toolbox {
    /// Creates an empty toolbox.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a toolbox with the tools that every run has.
    #[must_use]
    pub fn standard(commands: CommandSettings) -> Self {
        let mut toolbox = Self::new();
        let tools: [Arc<dyn Tool>; 11] = [
            Arc::new(read_file::read_file()),
            Arc::new(read_file::read_files()),
            Arc::new(list_dir::list_dir()),
            Arc::new(find_files::find_files()),
            Arc::new(search_text::search_text()),
            Arc::new(write_file::write_file()),
            Arc::new(edit_file::edit_file()),
            Arc::new(apply_patch::apply_patch()),
            Arc::new(shell::shell(commands)),
            Arc::new(shell::shell_poll()),
            Arc::new(shell::shell_kill()),
        ];
        for tool in tools {
            // Cannot fail: the names differ, which a test checks.
            let _ = toolbox.insert(tool);
        }
        toolbox
    }

    /// Whether this is the name of a standard tool; these names are reserved.
    #[must_use]
    pub fn is_standard(name: &str) -> bool {
        STANDARD.contains(&name)
    }

    /// Adds a tool. If its name is taken, the existing tool keeps it and the new one is returned as the
    /// error; aliases that are taken are skipped.
    pub fn insert(&mut self, tool: Arc<dyn Tool>) -> Result<(), Arc<dyn Tool>> {
        let definition = tool.definition();
        if let Some(&holder) = self.index.get(definition.name.as_ref())
            && self.tools[holder].definition().name == definition.name
        {
            return Err(tool);
        }
        let position = self.tools.len();
        // A tool's own name takes precedence over another tool's alias.
        self.index.insert(definition.name.to_string(), position);
        let more = tool.extra_aliases();
        for alias in definition.aliases.iter().map(|alias| (*alias).to_owned()).chain(more) {
            self.index.entry(alias).or_insert(position);
        }
        self.tools.push(tool);
        Ok(())
    }

    /// Finds a tool by name or alias.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.index.get(name).map(|&position| &self.tools[position])
    }

    /// Definitions sent to a model, in insertion order.
    pub fn definitions(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.tools.iter().map(|tool| tool.definition())
    }

    /// All tools, in insertion order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }

    /// Suggests up to three names similar to an unknown one, best first.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Vec<String> {
        crate::suggestions::names(name, self.tools.iter().map(|tool| tool.definition().name.as_ref()), 3)
    }
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.definitions().map(|definition| &definition.name)).finish()
    }
}

#[cfg(test)]
mod tests;
