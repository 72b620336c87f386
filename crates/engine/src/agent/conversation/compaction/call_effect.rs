//! Classifies a call by its name and arguments, as far as compaction needs it. Of arguments that are not a
//! JSON object, only the name is used.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use fusee_tools::{CommandSettings, ToolDefinition, Toolbox};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::turns::CallExchange;

#[cfg(test)]
mod tests;

/// The standard tools, by name and alias. The tools crate defines the aliases.
static STANDARD: LazyLock<HashMap<String, Names>> = LazyLock::new(|| {
    let toolbox = Toolbox::standard(CommandSettings::default());
    let names = |definition: &ToolDefinition| {
        let own = definition.name.to_string();
        let aliases: Vec<String> = definition.aliases.iter().map(|alias| (*alias).to_owned()).collect();
        let parameters = definition.parameter_aliases;
        let entry = move |name: String| (name, Names { name: own.clone(), parameters });
        std::iter::once(definition.name.to_string()).chain(aliases).map(entry)
    };
    toolbox.definitions().flat_map(names).collect()
});

struct Names {
    /// Canonical name of the tool.
    name: String,
    /// Parameter aliases, each with the canonical name.
    parameters: &'static [(&'static str, &'static str)],
}

/// Kinds of calls that compaction treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CallKind {
    /// One file, or part of it.
    ReadFile,
    /// Several files.
    ReadFiles,
    /// A section of the prompt.
    ReadSection,
    /// `write_file`, `edit_file`.
    Change,
    /// `apply_patch`.
    Patch,
    /// A command line.
    Command,
    /// Status of a background command.
    Job,
    /// Exploration: `list_dir`, `find_files`, `search_text`.
    Look,
    /// A question to the user.
    Ask,
    /// A `plan_tasks` call.
    Plan,
    /// `think`; nothing to summarise.
    Think,
    /// Any other tool.
    Other,
}

impl CallKind {
    /// Accepts any alias, because a result carries the name the model used.
    pub(super) fn from_tool(name: &str) -> CallKind {
        match STANDARD.get(name).map_or(name, |tool| &tool.name) {
            "read_file" => CallKind::ReadFile,
            "read_files" => CallKind::ReadFiles,
            "read_section" => CallKind::ReadSection,
            "write_file" | "edit_file" => CallKind::Change,
            "apply_patch" => CallKind::Patch,
            "shell" => CallKind::Command,
            "shell_poll" | "shell_kill" => CallKind::Job,
            "list_dir" | "find_files" | "search_text" => CallKind::Look,
            "ask_user" => CallKind::Ask,
            "plan_tasks" => CallKind::Plan,
            "think" => CallKind::Think,
            _ => CallKind::Other,
        }
    }

    /// Whether the result is text that the model works from and cannot reconstruct.
    pub(super) fn reads(self) -> bool {
        matches!(self, CallKind::ReadFile | CallKind::ReadFiles | CallKind::ReadSection)
    }
}

/// Identifies the text a read asks for. Equal keys ask for the same text at different times.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ReadKey {
    kind: CallKind,
    /// Paths, or the key of a section.
    what: Vec<String>,
    /// Offset and limit.
    range: [Option<String>; 2],
}

impl ReadKey {
    pub(super) fn from_exchange(kind: CallKind, exchange: &CallExchange<'_>) -> Option<ReadKey> {
        let arguments = CallArguments::parse(exchange.name, &exchange.call.arguments);
        let what = match kind {
            CallKind::ReadSection => vec![word(arguments.section_key.as_ref()?)?],
            _ => arguments.files(),
        };
        let range = [arguments.offset, arguments.limit].map(|bound| bound.as_ref().and_then(word));
        (!what.is_empty()).then_some(ReadKey { kind, what, range })
    }
}

/// The arguments relevant to compaction. The others, often the longest, are skipped without being parsed.
/// Types are left open because a model may write a number as a string.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CallArguments {
    path: Option<Value>,
    paths: Option<Value>,
    offset: Option<Value>,
    limit: Option<Value>,
    section_key: Option<Value>,
    command: Option<Value>,
    pattern: Option<Value>,
    question: Option<Value>,
    patch: Option<Value>,
    job: Option<Value>,
}

impl CallArguments {
    /// Parses the arguments of a call to `tool`, which may be an alias.
    pub(super) fn parse(tool: &str, json: &str) -> CallArguments {
        let aliases = STANDARD.get(tool).map_or(&[][..], |names| names.parameters);
        let mut deserializer = serde_json::Deserializer::from_str(json);
        Named { aliases }.deserialize(&mut deserializer).unwrap_or_default()
    }

    fn slot(&mut self, name: &str) -> Option<&mut Option<Value>> {
        Some(match name {
            "path" => &mut self.path,
            "paths" => &mut self.paths,
            "offset" => &mut self.offset,
            "limit" => &mut self.limit,
            "section_key" => &mut self.section_key,
            "command" => &mut self.command,
            "pattern" => &mut self.pattern,
            "question" => &mut self.question,
            "patch" => &mut self.patch,
            "job" => &mut self.job,
            _ => return None,
        })
    }

    /// The files named by `path` and `paths`.
    pub(super) fn files(&self) -> Vec<String> {
        let listed = match &self.paths {
            Some(Value::Array(paths)) => paths.as_slice(),
            Some(path) => std::slice::from_ref(path),
            None => &[],
        };
        self.path.iter().chain(listed).filter_map(word).map(without_dot).collect()
    }

    pub(super) fn command(&self) -> Option<&str> {
        self.command.as_ref()?.as_str()
    }

    pub(super) fn job(&self) -> Option<String> {
        word(self.job.as_ref()?)
    }

    pub(super) fn pattern(&self) -> Option<&str> {
        self.pattern.as_ref()?.as_str()
    }

    pub(super) fn question(&self) -> Option<&str> {
        self.question.as_ref()?.as_str()
    }

    /// The files a patch names, in either patch format.
    pub(super) fn patched_files(&self) -> Vec<String> {
        let Some(Value::String(patch)) = &self.patch else { return Vec::new() };
        let mut files: Vec<String> = Vec::new();
        let mut before = "";
        for line in patch.lines() {
            if let Some(file) = enveloped_file(line).or_else(|| unified_file(before, line))
                && !files.iter().any(|known| known == file)
            {
                files.push(file.to_owned());
                if files.len() == MAX_PATCHED_FILES {
                    break;
                }
            }
            before = line;
        }
        files
    }
}

/// Deserializes arguments whose names may be aliases.
struct Named {
    aliases: &'static [(&'static str, &'static str)],
}

impl<'de> DeserializeSeed<'de> for Named {
    type Value = CallArguments;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<CallArguments, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Named {
    type Value = CallArguments;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("arguments by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CallArguments, A::Error> {
        let mut arguments = CallArguments::default();
        while let Some(given) = map.next_key::<String>()? {
            let alias = self.aliases.iter().find(|(alias, _)| *alias == given);
            let name = alias.map_or(given.as_str(), |(_, name)| name);
            match arguments.slot(name) {
                Some(slot) if alias.is_none() || slot.is_none() => *slot = map.next_value()?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(arguments)
    }
}

/// Maximum number of files taken from a patch; a summary shows fewer.
const MAX_PATCHED_FILES: usize = 32;

fn enveloped_file(line: &str) -> Option<&str> {
    const MARKS: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];
    MARKS.iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)
}

/// A header consists of two lines; a single one may be a changed line of code.
fn unified_file<'a>(before: &'a str, line: &'a str) -> Option<&'a str> {
    let (old, new) = (before.strip_prefix("--- ")?, line.strip_prefix("+++ ")?);
    let file = |side: &'a str| side.split('\t').next().unwrap_or(side).trim();
    match (file(old), file(new)) {
        (old, "/dev/null") => Some(old.strip_prefix("a/").unwrap_or(old)),
        (_, new) => Some(new.strip_prefix("b/").unwrap_or(new)),
    }
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn without_dot(path: String) -> String {
    match path.strip_prefix("./") {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => path,
    }
}
