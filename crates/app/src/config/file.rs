//! Reading one configuration file: every value that fits its key, and a diagnostic for everything else.

use std::io;
use std::path::Path;

use fusee_engine::approval::rules::Rule;
use fusee_engine::text::{Diagnostic, Diagnostics, Source, Span, near};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key::{ALIASES, KEYS, Key, MODEL_KEYS, Reach, Unit};
use super::mcp::{self, McpEntry};
use super::rule;
use super::value::{Kind, Misfit, Value};
use super::{ModelEntry, Origin};

/// No configuration is larger.
const MOST_BYTES: u64 = 1 << 20;

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The user's own: it may set everything.
    User,
    /// A project's, which came from somewhere: what reaches outside the workspace is not taken from it.
    Project,
    /// The same after the user said that it may decide that too.
    TrustedProject,
}

/// What a file said.
#[derive(Debug, Default)]
pub(crate) struct FileContent {
    pub(crate) values: Vec<(&'static Key, Value, Origin)>,
    pub(crate) models: Vec<ModelEntry>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) mcp: Vec<McpEntry>,
}

/// Reads the file; `None` if there is none. Problems are added to `problems`.
pub(crate) fn read(
    path: &Path,
    whose: impl FnOnce(&str) -> Whose,
    problems: &mut Diagnostics,
) -> Option<(Source, FileContent)> {
    let name = path.display().to_string();
    let text = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Ok(found) if found.len() > MOST_BYTES => Err(io::Error::other("it is larger than 1 MiB")),
        Ok(_) | Err(_) => std::fs::read_to_string(path),
    };
    match text {
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

/// Reads the text of a file.
pub(crate) fn parse(source: &Source, path: &Path, whose: Whose, problems: &mut Diagnostics) -> FileContent {
    let (table, errors) = DeTable::parse_recoverable(source.text());
    // What can be recovered from a broken text is not what its author meant.
    let is_whole = errors.is_empty();
    for error in errors {
        let span = error.span().map_or_else(Span::default, Span::from);
        problems.push(Diagnostic::error("toml", source, span, error.message().trim().replace('\n', "; ")));
    }
    let mut reading = Reading { source, path, whose, problems, content: FileContent::default() };
    if is_whole {
        reading.table("", table.get_ref());
    }
    reading.content
}

struct Reading<'a> {
    source: &'a Source,
    path: &'a Path,
    whose: Whose,
    problems: &'a mut Diagnostics,
    content: FileContent,
}

impl Reading<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        // The parser sorts by name; people read from the top.
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in entries {
            let path = if prefix.is_empty() {
                name.get_ref().to_string()
            } else {
                format!("{prefix}.{}", name.get_ref())
            };
            if path == "models" {
                self.models(value);
            } else if path == "mcp" {
                self.servers(value);
            } else if path == "rules" {
                self.rules(name.span().into(), value);
            } else if let (true, DeValue::Table(inner)) = (is_prefix(&path), value.get_ref()) {
                self.table(&path, inner);
            } else if let Some((key, unit)) = known(&path) {
                self.value(key, unit, &path, name.span().into(), value);
            } else if is_prefix(&path) {
                let message = format!("expected a table, found something else for `{path}`");
                self.problem("wrong-type", value.span().into(), message, None);
            } else {
                self.unknown(&path, name.span().into(), known_names());
            }
        }
    }

    fn value(&mut self, key: &'static Key, unit: Unit, path: &str, name: Span, value: &Spanned<DeValue<'_>>) {
        if self.whose == Whose::Project && key.reach == Reach::Outside {
            self.distrusted(name, path, key.flag);
            return;
        }
        match read_unit(key.kind, unit, value.get_ref()) {
            Ok(read) if self.content.values.iter().any(|(other, ..)| other.name == key.name) => {
                let message = format!("`{path}` sets `{}` a second time, to {read}", key.name);
                self.problem("set-twice", name, message, Some("keep one of the two names".to_owned()));
            }
            Ok(read) => {
                let origin = self.origin(name);
                self.content.values.push((key, read, origin));
            }
            Err(Misfit { message, help }) => {
                self.problem("wrong-value", value.span().into(), format!("`{path}`: {message}"), help);
            }
        }
    }

    fn models(&mut self, value: &Spanned<DeValue<'_>>) {
        let DeValue::Table(table) = value.get_ref() else {
            let message = "`models` is a table of models: [models.NAME]".to_owned();
            return self.problem("wrong-type", value.span().into(), message, None);
        };
        for (name, entry) in table {
            if self.whose == Whose::Project {
                self.distrusted(name.span().into(), &format!("models.{}", name.get_ref()), None);
                continue;
            }
            let DeValue::Table(fields) = entry.get_ref() else {
                let message = format!("`models.{}` is a table: model, base_url, api, …", name.get_ref());
                self.problem("wrong-type", entry.span().into(), message, None);
                continue;
            };
            self.model(name.get_ref(), name.span().into(), fields);
        }
    }

    fn model(&mut self, name: &str, at: Span, fields: &DeTable<'_>) {
        let mut entry = ModelEntry::new(name, self.origin(at));
        for (field, value) in fields {
            let Some(key) = MODEL_KEYS.iter().find(|key| key.name == field.get_ref().as_ref()) else {
                self.unknown(
                    field.get_ref(),
                    field.span().into(),
                    MODEL_KEYS.iter().map(|key| key.name).collect(),
                );
                continue;
            };
            match key.kind.read_toml(value.get_ref()) {
                Ok(value) => entry.set(key.name, value),
                Err(Misfit { message, help }) => {
                    let message = format!("`models.{name}.{}`: {message}", key.name);
                    self.problem("wrong-value", value.span().into(), message, help);
                }
            }
        }
        if entry.model.is_none() && !fields.contains_key("model") {
            let message = format!("`models.{name}` does not say which model it is");
            self.problem("missing-key", at, message, Some("add model = \"…\"".to_owned()));
        }
        self.content.models.push(entry);
    }

    fn servers(&mut self, value: &Spanned<DeValue<'_>>) {
        let DeValue::Table(table) = value.get_ref() else {
            let message = "`mcp` is a table of servers: [mcp.NAME]".to_owned();
            return self.problem("wrong-type", value.span().into(), message, None);
        };
        for (name, entry) in table {
            let at: Span = name.span().into();
            if self.whose == Whose::Project {
                self.distrusted(at, &format!("mcp.{}", name.get_ref()), None);
                continue;
            }
            match mcp::read(name.get_ref(), at, entry, self.origin(at)) {
                Ok(entry) => self.content.mcp.push(entry),
                Err(problems) => {
                    for (span, message) in problems {
                        self.problem("wrong-server", span, message, None);
                    }
                }
            }
        }
    }

    fn rules(&mut self, at: Span, value: &Spanned<DeValue<'_>>) {
        if self.whose == Whose::Project {
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

    fn origin(&self, at: Span) -> Origin {
        Origin::File { path: self.path.to_owned(), line: self.source.line_of(at.start()) }
    }

    fn unknown(&mut self, path: &str, at: Span, names: Vec<&'static str>) {
        let help = near::did_you_mean(path, names.iter().copied())
            .unwrap_or_else(|| "`fusee config` lists the keys that there are".to_owned());
        self.problem("unknown-key", at, format!("there is no key `{path}`"), Some(help));
    }

    fn distrusted(&mut self, at: Span, path: &str, flag: Option<&str>) {
        let message = format!(
            "`{path}` is ignored: it reaches outside the workspace, and this project's file is not trusted"
        );
        let help = match flag {
            Some(flag) => {
                format!("look at the file, then `fusee trust`; or put it into your own, or pass {flag}")
            }
            None => "look at the file, then `fusee trust`; or put it into your own".to_owned(),
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

fn read_unit(kind: Kind, unit: Unit, value: &DeValue<'_>) -> Result<Value, Misfit> {
    match unit {
        Unit::Same => kind.read_toml(value),
        Unit::Milliseconds => {
            let any = Kind::Whole { least: 1, most: i64::MAX as u64 };
            match any.read_toml(value)? {
                // The key counts whole seconds: shorter ones are not cut to nothing.
                Value::Whole(ms) => kind.read_text(&ms.div_ceil(1000).to_string()),
                other @ (Value::Text(_) | Value::List(_) | Value::Number(_)) => Ok(other),
            }
        }
    }
}
