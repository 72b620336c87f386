//! `hooks.json`: programs that run at events of a task, in the form of Claude Code and Codex. The user's own file is
//! beside `config.toml`, a project's is `.fusee/hooks.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fusee::engine::hook::{DEFAULT_TIMEOUT_S, HookEvent, HookSpec, MAX_TIMEOUT_S, content_hash};
use fusee::engine::text::{Diagnostic, Diagnostics, Source, Span, suggest};
use fusee::engine::tools::workspace::bounded_read;

use super::file::FileOwner;
use super::spanned_tree::{Entry, Leaf, Node, parse_json};
use super::{Config, project_owner};
use crate::process::environment::Environment;

/// A project's file, relative to its home.
pub(crate) const PROJECT_FILE: &str = ".fusee/hooks.json";

/// The user's file, in the configuration folder.
pub(crate) const USER_FILE: &str = "hooks.json";

/// Maximum number of hooks in a file.
const MAX_HOOKS: usize = 200;

/// Maximum number of files that a command may name.
const MAX_FILES: usize = 32;

/// Variables that hold the directory of the project.
const DIRECTORY_VARIABLES: [&str; 4] =
    ["${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR", "${FUSEE_PROJECT_DIR}", "$FUSEE_PROJECT_DIR"];

impl Config {
    /// Adds the hooks of a file.
    pub(super) fn add_hooks(&mut self, path: &Path, of_project: bool, problems: &mut Diagnostics) {
        let name = path.display().to_string();
        if let Some((source, hooks)) = read(path, &name, of_project, problems) {
            self.sources.push(source);
            self.hooks.extend(hooks);
        }
    }

    /// Adds the hooks of the project if the user has trusted it, and says so if not.
    pub(super) fn add_project_hooks(
        &mut self,
        config_file: &Path,
        environment: &Environment,
        problems: &mut Diagnostics,
    ) {
        let owner = project_owner(environment, config_file);
        self.trusts_project = owner == FileOwner::TrustedProject;
        let path = config_file.with_file_name(PROJECT_FILE);
        if self.trusts_project {
            return self.add_hooks(&path, true, problems);
        }
        if path.exists() {
            let why = match owner {
                FileOwner::ChangedProject => "this project has changed since you trusted it",
                _ => "this project is not trusted",
            };
            let source = Source::new(path.display().to_string(), "");
            let message = format!("hooks are ignored: they run outside the sandbox, and {why}");
            let help = "review the file, then run `fusee trust`";
            problems.push(Diagnostic::warning("not-trusted", &source, Span::at(0), message).help(help));
            self.sources.push(source);
        }
    }

    /// The hooks that are in force, without the files that they name.
    pub(crate) fn listed_hooks(&self) -> &[HookSpec] {
        &self.hooks
    }

    /// The hooks of a run in this directory of the project at `root`.
    pub(crate) fn hooks(&self, directory: &Path, root: &Path) -> Vec<HookSpec> {
        let with_files =
            |hook: &HookSpec| HookSpec { files: files_of(&hook.command, directory, root), ..hook.clone() };
        self.hooks.iter().map(with_files).collect()
    }

    /// Whether the user has trusted the project as it is now.
    pub(crate) fn trusts_project(&self) -> bool {
        self.trusts_project
    }
}

/// Reads a file; `None` if it does not exist.
pub(crate) fn read(
    path: &Path,
    name: &str,
    of_project: bool,
    problems: &mut Diagnostics,
) -> Option<(Source, Vec<HookSpec>)> {
    match bounded_read::read_text(path, super::MAX_BYTES) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            let message = format!("cannot read this file: {error}");
            problems.push(Diagnostic::file_error("unreadable", name, message));
            None
        }
        Ok(text) => {
            let source = Source::new(name, text);
            let hooks = parse(&source, of_project, problems);
            Some((source, hooks))
        }
    }
}

/// Parses the text of a file. Everything valid is returned, and a diagnostic for everything else.
pub(crate) fn parse(source: &Source, of_project: bool, problems: &mut Diagnostics) -> Vec<HookSpec> {
    let mut reader = HookReader { source, of_project, problems, hooks: Vec::new() };
    match parse_json(source.text()) {
        Ok(tree) => reader.file(&tree),
        Err((span, message)) => reader.problems.push(Diagnostic::error("json", source, span, message)),
    }
    reader.hooks
}

/// The files below `root` that the command of a hook names, with the hash of their content. `directory` is where the
/// command runs.
pub(crate) fn files_of(command: &str, directory: &Path, root: &Path) -> BTreeMap<PathBuf, String> {
    let place = root.display().to_string();
    // Quotes are taken off first: "$CLAUDE_PROJECT_DIR"/x and "$CLAUDE_PROJECT_DIR/x" are the same.
    let mut text = command.replace(['"', '\''], "");
    for variable in DIRECTORY_VARIABLES {
        text = text.replace(variable, &place);
    }
    let words = text.split(|c: char| c.is_whitespace() || ";|&()<>=`".contains(c));
    let found = words.filter(|word| !word.is_empty()).filter_map(|word| {
        let file = directory.join(word).canonicalize().ok().filter(|file| file.starts_with(root))?;
        let hash = content_hash(&file)?;
        Some((file, hash))
    });
    found.take(MAX_FILES).collect()
}

struct HookReader<'a> {
    source: &'a Source,
    of_project: bool,
    problems: &'a mut Diagnostics,
    hooks: Vec<HookSpec>,
}

impl HookReader<'_> {
    fn file(&mut self, tree: &Node) {
        let Some(entries) = self.table(tree, "the file") else { return };
        let Some(hooks) = entries.iter().find(|entry| entry.name == "hooks") else {
            return self.error(
                "missing-key",
                tree.span,
                "`hooks` is missing: {\"hooks\": {\"PreToolUse\": […]}}",
            );
        };
        let Some(events) = self.table(&hooks.node, "`hooks`") else { return };
        for entry in events {
            match HookEvent::named(&entry.name) {
                Some(event) => self.event(event, &entry.node),
                None => {
                    let known = HookEvent::ALL.map(HookEvent::name);
                    let help = suggest::did_you_mean(&entry.name, known)
                        .unwrap_or_else(|| format!("the events are {}", known.join(", ")));
                    let message = format!("unknown event `{}`: its hooks are not run", entry.name);
                    self.warn("unknown-event", entry.at, message, Some(help));
                }
            }
        }
    }

    fn event(&mut self, event: HookEvent, node: &Node) {
        let Some(groups) = self.list(node, event.name()) else { return };
        for group in groups {
            let Some(fields) = self.table(group, "a group of hooks") else { continue };
            self.only(fields, &["matcher", "hooks", "description"]);
            let matcher = field(fields, "matcher").and_then(|node| self.matcher(event, node));
            match field(fields, "hooks") {
                None => self.error("missing-key", group.span, "`hooks` is missing in this group"),
                Some(node) => {
                    for hook in self.list(node, "`hooks`").unwrap_or_default() {
                        self.hook(event, matcher.as_deref(), hook);
                    }
                }
            }
        }
    }

    fn matcher(&mut self, event: HookEvent, node: &Node) -> Option<String> {
        let Leaf::Text(matcher) = &node.value else {
            self.error("wrong-type", node.span, &format!("`matcher`: expected text, found {}", node.shown()));
            return None;
        };
        if let Err(error) = HookSpec::check_matcher(matcher) {
            let message = format!("`matcher` is not a regular expression: {error}");
            self.error("wrong-value", node.span, &message);
        }
        let takes_none =
            matches!(event, HookEvent::UserPromptSubmit | HookEvent::Stop | HookEvent::SubagentStop);
        // These events have nothing to match, and the others ignore a matcher there.
        (!takes_none && !matcher.is_empty() && matcher != "*").then(|| matcher.clone())
    }

    fn hook(&mut self, event: HookEvent, matcher: Option<&str>, node: &Node) {
        let Some(fields) = self.table(node, "a hook") else { return };
        self.only(fields, &["type", "command", "timeout", "statusMessage"]);
        match field(fields, "type").map(|node| (&node.value, node)) {
            Some((Leaf::Text(kind), _)) if kind == "command" => {}
            Some((Leaf::Text(kind), node)) => {
                let message = format!("hooks of type `{kind}` are not supported: this one is not run");
                return self.warn("unknown-type", node.span, message, Some("use type `command`".to_owned()));
            }
            _ => return self.error("missing-key", node.span, "`type` is missing: \"type\": \"command\""),
        }
        let command = match field(fields, "command").map(|node| (&node.value, node)) {
            Some((Leaf::Text(command), _)) if !command.trim().is_empty() => command.clone(),
            Some((_, node)) => {
                return self.error("wrong-value", node.span, "`command`: expected a command line");
            }
            None => return self.error("missing-key", node.span, "`command` is missing"),
        };
        let timeout_s = match field(fields, "timeout") {
            None => DEFAULT_TIMEOUT_S,
            Some(node) => match seconds(node) {
                Some(timeout) => timeout,
                None => {
                    let message = format!(
                        "`timeout`: expected seconds from 1 to {MAX_TIMEOUT_S}, found {}",
                        node.shown()
                    );
                    return self.error("wrong-value", node.span, &message);
                }
            },
        };
        if self.hooks.len() >= MAX_HOOKS {
            return self.error("too-many", node.span, &format!("more than {MAX_HOOKS} hooks"));
        }
        let (matcher, of_project) = (matcher.map(str::to_owned), self.of_project);
        self.hooks.push(HookSpec { event, matcher, command, timeout_s, of_project, files: BTreeMap::new() });
    }

    /// Warns about keys that have no effect.
    fn only(&mut self, fields: &[Entry], known: &[&'static str]) {
        for entry in fields.iter().filter(|entry| !known.contains(&entry.name.as_str())) {
            let help = suggest::did_you_mean(&entry.name, known.iter().copied());
            self.warn("unknown-key", entry.at, format!("`{}` has no effect", entry.name), help);
        }
    }

    fn table<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Entry]> {
        match &node.value {
            Leaf::Table(entries) => Some(entries),
            _ => {
                let message = format!("{what}: expected an object, found {}", node.shown());
                self.error("wrong-type", node.span, &message);
                None
            }
        }
    }

    fn list<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Node]> {
        match &node.value {
            Leaf::List(items) => Some(items),
            _ => {
                self.error(
                    "wrong-type",
                    node.span,
                    &format!("{what}: expected a list, found {}", node.shown()),
                );
                None
            }
        }
    }

    fn error(&mut self, code: &'static str, at: Span, message: &str) {
        self.problems.push(Diagnostic::error(code, self.source, at, message));
    }

    fn warn(&mut self, code: &'static str, at: Span, message: String, help: Option<String>) {
        self.problems.push(Diagnostic::warning(code, self.source, at, message).maybe_help(help));
    }
}

fn field<'n>(fields: &'n [Entry], name: &str) -> Option<&'n Node> {
    fields.iter().find(|entry| entry.name == name).map(|entry| &entry.node)
}

/// A number of seconds, rounded up.
fn seconds(node: &Node) -> Option<u64> {
    let seconds = match &node.value {
        Leaf::Whole { number, .. } => u64::try_from((*number)?).ok()?,
        Leaf::Number { number, .. } if *number > 0.0 && *number <= MAX_TIMEOUT_S as f64 => {
            number.ceil() as u64
        }
        _ => return None,
    };
    (1..=MAX_TIMEOUT_S).contains(&seconds).then_some(seconds)
}

#[cfg(test)]
mod tests;
