//! Reads one configuration file: every valid value, and a diagnostic for everything else.

use std::io;
use std::path::Path;

use fusee::engine::approval::rules::ApprovalRule;
use fusee::engine::text::{Diagnostic, Diagnostics, Source, Span, suggest};
use fusee::engine::tools::workspace::bounded_read;
use toml::de::DeTable;

use super::flow_keys::AGENT_KEYS;
use super::key::{ALIASES, KEYS, Key, KeyScope, MODEL_KEYS, Unit};
use super::mcp::{self, McpEntry};
use super::rule;
use super::spanned_tree::{Entry, Leaf, Node, parse_json};
use super::stages::{self, StageError};
use super::value::{Kind, TypeMismatch, Value};
use super::{ModelEntry, ValueOrigin};

/// Maximum size of a configuration file.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// Whose file it is, which decides what it may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileOwner {
    /// The user's own: may set everything.
    User,
    /// A project's, possibly downloaded: keys that reach outside the workspace are ignored.
    Project,
    /// A project's that has changed since the user trusted it: treated like one that is not trusted.
    ChangedProject,
    /// A project's that the user has trusted: may set everything.
    TrustedProject,
    /// An agent file named for this command: may set everything.
    Agent,
}

impl FileOwner {
    /// Whether keys that reach outside the workspace are ignored.
    fn is_untrusted(self) -> bool {
        matches!(self, Self::Project | Self::ChangedProject)
    }
}

/// Settings, models, rules and MCP servers read from one file.
#[derive(Debug, Default)]
pub(crate) struct FileContent {
    pub(crate) values: Vec<(&'static Key, Value, ValueOrigin)>,
    pub(crate) models: Vec<ModelEntry>,
    pub(crate) rules: Vec<ApprovalRule>,
    pub(crate) mcp: Vec<McpEntry>,
}

/// Reads the file; `None` if it does not exist. Errors are added to `problems`.
pub(crate) fn read(
    path: &Path,
    whose: impl FnOnce(&str) -> FileOwner,
    problems: &mut Diagnostics,
) -> Option<(Source, FileContent)> {
    let name = path.display().to_string();
    match bounded_read::read_text(path, MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Ok(text) => {
            let whose = whose(&text);
            let source = Source::new(name, text);
            let content = parse(&source, path, whose, problems);
            Some((source, content))
        }
        Err(error) => {
            problems.push(Diagnostic::file_error(
                "unreadable",
                name,
                format!("cannot read this file: {error}"),
            ));
            None
        }
    }
}

/// Parses the text of a file.
pub(crate) fn parse(
    source: &Source,
    path: &Path,
    whose: FileOwner,
    problems: &mut Diagnostics,
) -> FileContent {
    let tree = if path.extension().is_some_and(|name| name == "json") {
        match parse_json(source.text()) {
            Ok(tree) => Some(tree),
            Err((span, words)) => {
                problems.push(Diagnostic::error("json", source, span, words));
                None
            }
        }
    } else {
        toml(source, problems)
    };
    let mut reading = FileReader { source, path, whose, problems, content: FileContent::default() };
    match tree {
        None => {}
        Some(Node { value: Leaf::Table(entries), .. }) => reading.table("", &entries),
        Some(other) => {
            let message = format!("expected a table of keys, found {}", other.shown());
            reading.problem("wrong-type", other.span, message, None);
        }
    }
    reading.content
}

/// Parses TOML. Content recovered from a broken file may not be what its author meant, so it is discarded.
fn toml(source: &Source, problems: &mut Diagnostics) -> Option<Node> {
    let (table, errors) = DeTable::parse_recoverable(source.text());
    let is_whole = errors.is_empty();
    for error in errors {
        let span = error.span().map_or_else(Span::default, Span::from);
        problems.push(Diagnostic::error("toml", source, span, error.message().trim().replace('\n', "; ")));
    }
    is_whole.then(|| Node::of_toml(&table))
}

struct FileReader<'a> {
    source: &'a Source,
    path: &'a Path,
    whose: FileOwner,
    problems: &'a mut Diagnostics,
    content: FileContent,
}

impl FileReader<'_> {
    fn table(&mut self, prefix: &str, entries: &[Entry]) {
        for entry in entries {
            let path =
                if prefix.is_empty() { entry.name.clone() } else { format!("{prefix}.{}", entry.name) };
            if path == "models" {
                self.models(&entry.node);
            } else if path == "mcp" {
                self.servers(&entry.node);
            } else if path == "rules" {
                self.rules(entry.at, &entry.node);
            } else if path == "flow" {
                self.stages(entry);
            } else if let Some(key) = self.agent_key(&path) {
                self.value(key, Unit::Same, &path, entry.at, &entry.node);
            } else if let (true, true, Leaf::Table(inner)) =
                (is_prefix(&path), !takes_table(&path), &entry.node.value)
            {
                self.table(&path, inner);
            } else if let Some((key, unit)) = known(&path) {
                self.value(key, unit, &path, entry.at, &entry.node);
            } else if is_prefix(&path) {
                let message = format!("expected a table for `{path}`");
                self.problem("wrong-type", entry.node.span, message, None);
            } else {
                self.unknown(&path, entry.at, known_names());
            }
        }
    }

    fn agent_key(&self, path: &str) -> Option<&'static Key> {
        AGENT_KEYS.iter().find(|key| self.whose == FileOwner::Agent && key.name == path)
    }

    fn stages(&mut self, entry: &Entry) {
        let Some(key) = Key::named("flow") else { return };
        match stages::read(&entry.node) {
            Ok(value) => {
                let origin = self.origin(entry.at);
                self.content.values.push((key, value, origin));
            }
            Err(complaints) => {
                for StageError { code, at, message, help } in complaints {
                    self.problem(code, at, message, help);
                }
            }
        }
    }

    fn value(&mut self, key: &'static Key, unit: Unit, path: &str, name: Span, value: &Node) {
        if self.whose.is_untrusted() && key.reach == KeyScope::Outside {
            self.distrusted(name, path, key.flag);
            return;
        }
        match read_unit(key.kind, unit, value) {
            Ok(read) if self.content.values.iter().any(|(other, ..)| other.name == key.name) => {
                let message = format!("`{path}` sets `{}` again, to {read}", key.name);
                self.problem("set-twice", name, message, Some("keep one of the two names".to_owned()));
            }
            Ok(read) => {
                let origin = self.origin(name);
                self.content.values.push((key, read, origin));
            }
            Err(TypeMismatch { message, help }) => {
                self.problem("wrong-value", value.span, format!("`{path}`: {message}"), help);
            }
        }
    }

    fn models(&mut self, value: &Node) {
        let Leaf::Table(table) = &value.value else {
            let message = "`models` must be a table: [models.NAME]".to_owned();
            return self.problem("wrong-type", value.span, message, None);
        };
        for Entry { name, at, node } in table {
            if self.whose.is_untrusted() {
                self.distrusted(*at, &format!("models.{name}"), None);
                continue;
            }
            let Leaf::Table(fields) = &node.value else {
                let message = format!("`models.{name}` must be a table with model, base_url, api, …");
                self.problem("wrong-type", node.span, message, None);
                continue;
            };
            self.model(name, *at, fields);
        }
    }

    fn model(&mut self, name: &str, at: Span, fields: &[Entry]) {
        let mut entry = ModelEntry::new(name, self.origin(at));
        for field in fields {
            let Some(key) = MODEL_KEYS.iter().find(|key| key.name == field.name) else {
                self.unknown(&field.name, field.at, MODEL_KEYS.iter().map(|key| key.name).collect());
                continue;
            };
            match key.kind.read(&field.node) {
                Ok(value) => entry.set(key.name, value),
                Err(TypeMismatch { message, help }) => {
                    let message = format!("`models.{name}.{}`: {message}", key.name);
                    self.problem("wrong-value", field.node.span, message, help);
                }
            }
        }
        if entry.model.is_none() && !fields.iter().any(|field| field.name == "model") {
            let message = format!("`models.{name}` has no `model`");
            self.problem("missing-key", at, message, Some("add model = \"…\"".to_owned()));
        }
        self.content.models.push(entry);
    }

    fn servers(&mut self, value: &Node) {
        let Leaf::Table(table) = &value.value else {
            let message = "`mcp` must be a table: [mcp.NAME]".to_owned();
            return self.problem("wrong-type", value.span, message, None);
        };
        for Entry { name, at, node } in table {
            let at = *at;
            if self.whose.is_untrusted() {
                self.distrusted(at, &format!("mcp.{name}"), None);
                continue;
            }
            match mcp::read(name, at, node, self.origin(at)) {
                Ok(entry) => self.content.mcp.push(entry),
                Err(problems) => {
                    for (span, message) in problems {
                        self.problem("wrong-server", span, message, None);
                    }
                }
            }
        }
    }

    fn rules(&mut self, at: Span, value: &Node) {
        if self.whose.is_untrusted() {
            return self.distrusted(at, "rules", None);
        }
        match rule::read_all(value) {
            Ok(rules) => self.content.rules.extend(rules),
            Err(problems) => {
                for (span, message) in problems {
                    self.problem("wrong-rule", span, message, None);
                }
            }
        }
    }

    fn origin(&self, at: Span) -> ValueOrigin {
        ValueOrigin::File { path: self.path.to_owned(), line: self.source.line_of(at.start()) }
    }

    fn unknown(&mut self, path: &str, at: Span, names: Vec<&'static str>) {
        let help = suggest::did_you_mean(path, names.iter().copied())
            .unwrap_or_else(|| "run `fusee config` to list all keys".to_owned());
        self.problem("unknown-key", at, format!("unknown key `{path}`"), Some(help));
    }

    fn distrusted(&mut self, at: Span, path: &str, flag: Option<&str>) {
        let why = match self.whose {
            FileOwner::ChangedProject => "this project has changed since you trusted it",
            _ => "this project's file is not trusted",
        };
        let message = format!("`{path}` is ignored: it reaches outside the workspace, and {why}");
        let help = match flag {
            Some(flag) => {
                format!("review the file, then run `fusee trust`; or set it in your own file, or pass {flag}")
            }
            None => "review the file, then run `fusee trust`; or set it in your own file".to_owned(),
        };
        self.problems.push(Diagnostic::warning("not-trusted", self.source, at, message).help(help));
    }

    fn problem(&mut self, code: &'static str, at: Span, message: String, help: Option<String>) {
        self.problems.push(Diagnostic::error(code, self.source, at, message).maybe_help(help));
    }
}

fn known(path: &str) -> Option<(&'static Key, Unit)> {
    if let Some(key) = Key::named(path) {
        return Some((key, Unit::Same));
    }
    let alias = ALIASES.iter().find(|alias| alias.name == path)?;
    Key::named(alias.key).map(|key| (key, alias.unit))
}

fn known_names() -> Vec<&'static str> {
    let keys = KEYS.iter().map(|key| key.name);
    keys.chain(ALIASES.iter().map(|alias| alias.name)).chain(["models", "rules", "mcp"]).collect()
}

fn is_prefix(path: &str) -> bool {
    known_names().iter().any(|name| name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// Whether the key with this name takes a table as its value.
fn takes_table(path: &str) -> bool {
    known(path).is_some_and(|(key, _)| matches!(key.kind, Kind::Texts))
}

fn read_unit(kind: Kind, unit: Unit, value: &Node) -> Result<Value, TypeMismatch> {
    match unit {
        Unit::Same => kind.read(value),
        Unit::Milliseconds => {
            let any = Kind::Whole { least: 1, most: i64::MAX as u64 };
            match any.read(value)? {
                Value::Whole(ms) => kind.read_text(&format!("{}.{:03}", ms / 1000, ms % 1000)),
                other => Ok(other),
            }
        }
    }
}
