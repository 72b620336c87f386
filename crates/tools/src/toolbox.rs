//! The set of tools a run has, found by name or alias and listed in a fixed order.

use std::collections::HashMap;
use std::sync::Arc;

use crate::redact::Secrets;
use crate::sandbox::{Allowance, Environment, Keeper, Sandbox};
use crate::tool::{Definition, Tool};
use crate::{edit, find, list, patch, read, search, shell, write};

/// What the command tools need besides a workspace.
#[derive(Clone, Debug, Default)]
pub struct CommandSettings {
    /// Starts and ends commands; without one every command is answered with an error.
    pub keeper: Option<Keeper>,
    /// The variables a command sees.
    pub environment: Environment,
    /// What holds a command.
    pub sandbox: Sandbox,
    /// How much a command may use.
    pub allowance: Allowance,
    /// What nobody is shown.
    pub secrets: Secrets,
}

/// The names of the tools that every run has, in their order.
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

/// Tools by name. The order of insertion is the order of the list a model sees, so that it stays the same.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    index: HashMap<String, usize>,
}

impl Toolbox {
    /// An empty box.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The tools that every run has.
    #[must_use]
    pub fn standard(commands: CommandSettings) -> Self {
        let mut toolbox = Self::new();
        let tools: [Arc<dyn Tool>; 11] = [
            Arc::new(read::read_file()),
            Arc::new(read::read_files()),
            Arc::new(list::list_dir()),
            Arc::new(find::find_files()),
            Arc::new(search::search_text()),
            Arc::new(write::write_file()),
            Arc::new(edit::edit_file()),
            Arc::new(patch::apply_patch()),
            Arc::new(shell::shell(commands)),
            Arc::new(shell::shell_poll()),
            Arc::new(shell::shell_kill()),
        ];
        for tool in tools {
            // Their names differ; a test holds them against each other.
            let _ = toolbox.insert(tool);
        }
        toolbox
    }

    /// Whether this is one of the standard tools: their names stay with them.
    #[must_use]
    pub fn is_standard(name: &str) -> bool {
        STANDARD.contains(&name)
    }

    /// Adds a tool. A name that is taken stays with the tool that had it, and the newcomer is handed back; an
    /// alias that is taken is left out.
    pub fn insert(&mut self, tool: Arc<dyn Tool>) -> Result<(), Arc<dyn Tool>> {
        let definition = tool.definition();
        if let Some(&holder) = self.index.get(definition.name.as_ref())
            && self.tools[holder].definition().name == definition.name
        {
            return Err(tool);
        }
        let position = self.tools.len();
        // A tool's own name wins over another's alias.
        self.index.insert(definition.name.to_string(), position);
        let more = tool.more_names();
        for alias in definition.aliases.iter().map(|alias| (*alias).to_owned()).chain(more) {
            self.index.entry(alias).or_insert(position);
        }
        self.tools.push(tool);
        Ok(())
    }

    /// The tool of this name or alias.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.index.get(name).map(|&position| &self.tools[position])
    }

    /// What a model sees, in the order of insertion.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.tools.iter().map(|tool| tool.definition())
    }

    /// All tools, in the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }

    /// Names that an unknown one may have meant, best first, three at most.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Vec<String> {
        crate::near::names(name, self.tools.iter().map(|tool| tool.definition().name.as_ref()), 3)
    }
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.definitions().map(|definition| &definition.name)).finish()
    }
}

#[cfg(test)]
mod tests;
