//! The effective configuration: built-in defaults, the user's file, the project's `fusee.toml`, an agent
//! file, `FUSEE_*` variables and flags, each overriding the ones before. Every value knows its origin.
//!
//! `key.rs` is the table of keys; `file.rs` reads one file; `schema.rs` and `reference.rs` are generated from
//! the table.

mod file;
pub(crate) mod flags;
mod flow;
mod flow_keys;
pub(crate) mod hooks;
mod key;
mod mcp;
mod review;
mod rule;
mod sandbox;
mod schema;
mod spanned_tree;
mod stages;
mod tables;
pub(crate) mod trust;
pub(crate) mod trust_report;
mod value;
mod web;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use fusee::engine::agent::Limits;
use fusee::engine::approval::ApprovalMode;
use fusee::engine::approval::rules::ApprovalRule;
use fusee::engine::hook::HookSpec;
use fusee::engine::journal::JournalOptions;
use fusee::engine::model::{Price, RequestOptions, RetryPolicy};
use fusee::engine::run::SandboxMode;
use fusee::engine::task_system::LimitOverrides;
use fusee::engine::text::render::{self, Colour};
use fusee::engine::text::{Diagnostic, Diagnostics, Source, Span, suggest};
use fusee::engine::tools::tool::computer::DisplayNumber;

use crate::config::trust::Trust;
use crate::process::environment::Environment;
use crate::process::error::CliError;
use file::FileContent;
pub(crate) use file::{FileOwner, MAX_BYTES};
use flow::FlowProblem;
pub(crate) use flow_keys::{AGENT_KEYS, STAGE_KEYS};
pub(crate) use key::{ALIASES, APIS, APPROVALS, KEYS, Key, KeyScope, MODEL_KEYS, SANDBOX_MODES, Unit};
pub(crate) use mcp::{LoginEntry, McpEntry, McpTransport};
pub(crate) use schema::json_schema;
pub(crate) use tables::TABLES;
pub(crate) use value::{Kind, Value, switch, word};
pub(crate) use web::search_key;

#[cfg(test)]
mod tests;

/// A source of settings. Later layers override earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    #[default]
    BuiltIn,
    UserFile,
    ProjectFile,
    AgentFile,
    Variables,
    Flags,
}

impl Layer {
    /// All layers, in the order in which they are applied.
    pub(crate) const ALL: [Self; 6] =
        [Self::BuiltIn, Self::UserFile, Self::ProjectFile, Self::AgentFile, Self::Variables, Self::Flags];

    /// Description for the reference page.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in defaults",
            Self::UserFile => {
                "your own file: `$XDG_CONFIG_HOME/fusee/config.toml`, else `~/.config/fusee/config.toml`"
            }
            Self::ProjectFile => "the project's `fusee.toml`",
            Self::AgentFile => "the agent file given with `--agent FILE`, in TOML or JSON",
            Self::Variables => "`FUSEE_*` environment variables",
            Self::Flags => "flags",
        }
    }
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueOrigin {
    BuiltIn,
    File { path: PathBuf, line: usize },
    Variable(String),
    Flag(&'static str),
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A `[models.NAME]` entry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModelEntry {
    pub(crate) name: String,
    pub(crate) model: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) api: Option<String>,
    pub(crate) api_key_env: Option<String>,
    pub(crate) context_tokens: Option<u64>,
    pub(crate) tool_format: Option<String>,
    pub(crate) origin: ValueOrigin,
}

impl ModelEntry {
    fn new(name: &str, origin: ValueOrigin) -> Self {
        let (model, base_url, api, api_key_env) = (None, None, None, None);
        let (context_tokens, tool_format) = (None, None);
        Self { name: name.to_owned(), model, base_url, api, api_key_env, context_tokens, tool_format, origin }
    }

    fn set(&mut self, field: &str, value: Value) {
        match (field, value) {
            ("model", Value::Text(text)) => self.model = Some(text),
            ("base_url", Value::Text(text)) => self.base_url = Some(text),
            ("api", Value::Text(text)) => self.api = Some(text),
            ("api_key_env", Value::Text(text)) => self.api_key_env = Some(text),
            ("context_tokens", Value::Whole(number)) => self.context_tokens = Some(number),
            ("tool_format", Value::Text(text)) => self.tool_format = Some(text),
            _ => {}
        }
    }
}

/// A key and the value given by a flag.
pub(crate) type FlagValue = (&'static str, Value);

/// The effective configuration.
#[derive(Debug)]
pub(crate) struct Config {
    values: BTreeMap<&'static str, (Value, ValueOrigin)>,
    /// The layer each value came from, unless it is built in.
    layers: BTreeMap<&'static str, Layer>,
    models: Vec<ModelEntry>,
    rules: Vec<ApprovalRule>,
    mcp: Vec<McpEntry>,
    hooks: Vec<HookSpec>,
    /// Whether the user has trusted the project.
    trusts_project: bool,
    /// The files that were looked for, and whether each exists.
    pub(crate) files: Vec<(PathBuf, bool)>,
    /// Files of the project that the user has not trusted.
    untrusted: Vec<PathBuf>,
    warnings: Vec<Diagnostic>,
    sources: Vec<Source>,
}

impl Config {
    /// Merges all layers. Errors of all layers are reported together.
    pub(crate) fn gather(
        project_file: Option<&Path>,
        environment: &Environment,
        flags: Vec<FlagValue>,
    ) -> Result<Self, CliError> {
        Self::gather_for(project_file, None, environment, flags)
    }

    /// Like [`gather`](Self::gather), with an agent file above the project's file.
    pub(crate) fn gather_for(
        project_file: Option<&Path>,
        agent_file: Option<&Path>,
        environment: &Environment,
        flags: Vec<FlagValue>,
    ) -> Result<Self, CliError> {
        let mut config = Self::built_in();
        let mut problems = Diagnostics::new();
        let user_file = environment.config_folder().map(|folder| folder.join("config.toml"));
        if let Some(path) = &user_file {
            config.add_file(path, |_| FileOwner::User, Layer::UserFile, &mut problems);
            config.add_hooks(&path.with_file_name(hooks::USER_FILE), false, &mut problems);
        }
        if let Some(path) = project_file {
            let mut untrusted = false;
            let whose = |text: &str| {
                let owner = Trust::read(environment).owner(path, text);
                untrusted = owner != FileOwner::TrustedProject;
                owner
            };
            config.add_file(path, whose, Layer::ProjectFile, &mut problems);
            config.untrusted.extend(untrusted.then(|| path.to_owned()));
            config.add_project_hooks(path, environment, &mut problems);
        }
        if let Some(path) = agent_file {
            let path = environment.directory().join(path);
            if !path.exists() {
                return Err(CliError::usage(format!("agent file {} not found", path.display())));
            }
            config.add_file(&path, |_| FileOwner::Agent, Layer::AgentFile, &mut problems);
            // It may set everything because the user named it, but a file of the project still is the project's.
            let folder = project_file.and_then(Path::parent).and_then(|folder| folder.canonicalize().ok());
            let is_inside = |folder: PathBuf| path.canonicalize().is_ok_and(|real| real.starts_with(folder));
            if folder.is_some_and(is_inside) && !project_file.is_some_and(|file| trusts(environment, file)) {
                config.untrusted.push(path);
            }
        }
        config.add_variables(environment, &mut problems);
        for (name, value) in flags {
            if let Some(key) = Key::named(name) {
                let value = checked(key, value)?;
                config.values.insert(key.name, (value, ValueOrigin::Flag(key.flag.unwrap_or("a flag"))));
                config.layers.insert(key.name, Layer::Flags);
            }
        }
        let has_errors = problems.has_errors();
        config.warnings = problems.into_sorted();
        if has_errors { Err(config.failure()) } else { Ok(config) }
    }

    fn built_in() -> Self {
        Self {
            values: built_in(),
            layers: BTreeMap::new(),
            models: Vec::new(),
            rules: Vec::new(),
            mcp: Vec::new(),
            hooks: Vec::new(),
            trusts_project: false,
            files: Vec::new(),
            untrusted: Vec::new(),
            warnings: Vec::new(),
            sources: Vec::new(),
        }
    }

    /// Whether a file of the project that the user has not trusted configures commands for the runtime.
    fn has_untrusted_commands(&self) -> bool {
        self.values.iter().any(|(name, (value, origin))| {
            let is_foreign =
                matches!(origin, ValueOrigin::File { path, .. } if self.untrusted.contains(path));
            is_foreign && (COMMAND_KEYS.contains(name) || matches!(value, Value::Stages(_)))
        })
    }

    fn add_file(
        &mut self,
        path: &Path,
        whose: impl FnOnce(&str) -> FileOwner,
        layer: Layer,
        problems: &mut Diagnostics,
    ) {
        let read = file::read(path, whose, problems);
        self.files.push((path.to_owned(), read.is_some()));
        let Some((source, content)) = read else { return };
        self.sources.push(source);
        self.add_content(content, layer);
    }

    fn add_content(&mut self, content: FileContent, layer: Layer) {
        self.layers.extend(content.values.iter().map(|(key, ..)| (key.name, layer)));
        self.values
            .extend(content.values.into_iter().map(|(key, value, origin)| (key.name, (value, origin))));
        self.rules.extend(content.rules);
        self.add_mcp(content.mcp);
        for entry in content.models {
            self.models.retain(|other| other.name != entry.name);
            self.models.push(entry);
        }
    }

    fn add_variables(&mut self, environment: &Environment, problems: &mut Diagnostics) {
        for key in KEYS {
            let name = key.variable();
            let Some(text) = environment.text(&name) else { continue };
            match key.kind.read_text(text) {
                Ok(value) => {
                    self.values.insert(key.name, (value, ValueOrigin::Variable(name)));
                    self.layers.insert(key.name, Layer::Variables);
                }
                Err(misfit) => {
                    let source = Source::new(name, text);
                    let span = Span::new(0, text.len());
                    let problem = Diagnostic::error("wrong-value", &source, span, misfit.message);
                    problems.push(problem.maybe_help(misfit.help));
                    self.sources.push(source);
                }
            }
        }
        self.find_typos(environment, problems);
    }

    /// Warns about variables whose name is close to that of a key.
    fn find_typos(&mut self, environment: &Environment, problems: &mut Diagnostics) {
        let others = ["FUSEE_API_KEY", "FUSEE_BENCHMARK"].map(str::to_owned);
        let known: Vec<String> = KEYS.iter().map(Key::variable).chain(others).collect();
        let ours = environment
            .variables()
            .filter_map(|(name, _)| name.to_str())
            .filter(|name| name.starts_with("FUSEE_"));
        for name in ours.filter(|name| !known.iter().any(|key| key == name)) {
            if let Some(help) = suggest::did_you_mean(name, known.iter().map(String::as_str)) {
                // The value is not shown because it may be secret.
                let source = Source::new(name, "");
                let message = format!("unknown variable {name}");
                problems
                    .push(Diagnostic::warning("unknown-variable", &source, Span::at(0), message).help(help));
            }
        }
    }

    fn failure(&self) -> CliError {
        CliError::rendered(self.rendered(Colour::Never))
    }

    fn rendered(&self, colour: Colour) -> String {
        render::terminal(
            &self.warnings,
            |name| self.sources.iter().find(|source| &**source.name() == name),
            colour,
        )
    }

    /// Rendered warnings, if any.
    pub(crate) fn warnings(&self, colour: Colour) -> Option<String> {
        (!self.warnings.is_empty()).then(|| self.rendered(colour))
    }

    /// A key's value and its origin.
    pub(crate) fn value(&self, key: &str) -> Option<&(Value, ValueOrigin)> {
        self.values.get(key)
    }

    /// The layer of a key's value; the built-in one if it is unset.
    fn layer(&self, key: &str) -> Layer {
        self.layers.get(key).copied().unwrap_or_default()
    }

    /// A key's value if it is text.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key) {
            Some((Value::Text(text), _)) => Some(text),
            _ => None,
        }
    }

    fn whole(&self, key: &str) -> Option<u64> {
        match self.values.get(key) {
            Some((Value::Whole(number), _)) => Some(*number),
            _ => None,
        }
    }

    fn number(&self, key: &str) -> Option<f64> {
        match self.values.get(key) {
            Some((Value::Number(number), _)) => Some(*number),
            _ => None,
        }
    }

    /// The `[models.NAME]` entries.
    pub(crate) fn models(&self) -> &[ModelEntry] {
        &self.models
    }

    /// Adds MCP servers; one of the same name is replaced.
    pub(crate) fn add_mcp(&mut self, entries: Vec<McpEntry>) {
        for entry in entries {
            self.mcp.retain(|other| other.name != entry.name);
            self.mcp.push(entry);
        }
    }

    /// Approval rules for commands, by command prefix.
    pub(crate) fn rules(&self) -> &[ApprovalRule] {
        &self.rules
    }

    /// The MCP servers.
    pub(crate) fn mcp(&self) -> &[McpEntry] {
        &self.mcp
    }

    /// Share of the context up to which definitions of MCP tools are sent with each request.
    pub(crate) fn mcp_context_share(&self) -> f64 {
        self.number("mcp_context_share").unwrap_or(0.1)
    }

    /// The limits of a task.
    pub(crate) fn limits(&self) -> Limits {
        let default = Limits::default();
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Limits {
            max_turns: self.whole("max_turns").map_or(default.max_turns, small),
            max_tokens: self.whole("max_tokens").unwrap_or(default.max_tokens),
            compaction_summary: self.word("compaction_summary").unwrap_or_default(),
            memory_ranking: self.word("memory_ranking").unwrap_or_default(),
            compaction_threshold: self.number("compaction_threshold").unwrap_or(default.compaction_threshold),
            timeout_s: self.number("timeout_s").unwrap_or(default.timeout_s),
            task_timeout_s: self.whole("task_timeout_s").or(default.task_timeout_s),
            approval_timeout_s: self.whole("approval_timeout_s").unwrap_or(default.approval_timeout_s),
            loading_timeout_s: self.whole("loading_timeout_s").unwrap_or(default.loading_timeout_s),
            patience_s: self.whole("patience_s"),
            subtask_depth: self.whole("subtask_depth").map_or(default.subtask_depth, small),
            budget_usd: self.number("budget_usd"),
            price: None,
            retry_policy: RetryPolicy {
                max_retries: self
                    .whole("retry_policy.max_retries")
                    .map_or(default.retry_policy.max_retries, small),
                backoff_ms: self.whole("retry_policy.backoff_ms").unwrap_or(default.retry_policy.backoff_ms),
                ..default.retry_policy
            },
        }
    }

    /// Limits given for this run by flag or variable; they override a template's.
    pub(crate) fn given_limits(&self) -> Option<LimitOverrides> {
        let given = |key: &str| {
            let (_, origin) = self.value(key)?;
            matches!(origin, ValueOrigin::Flag(_) | ValueOrigin::Variable(_))
                .then(|| self.whole(key))
                .flatten()
        };
        let limits = LimitOverrides {
            max_turns: given("max_turns").map(|turns| u32::try_from(turns).unwrap_or(u32::MAX)),
            max_tokens: given("max_tokens"),
            timeout: given("task_timeout_s"),
            ..LimitOverrides::default()
        };
        (limits != LimitOverrides::default()).then_some(limits)
    }

    /// The configured token price, used where the model's price is not known.
    pub(crate) fn price(&self) -> Option<Price> {
        let (input, output) = (self.number("price.input"), self.number("price.output"));
        let known = input.is_some() || output.is_some();
        known.then(|| Price {
            input: input.unwrap_or_default(),
            output: output.unwrap_or_default(),
            cached: self.number("price.cached"),
            cache_write: None,
        })
    }

    /// Sampling options of a request.
    pub(crate) fn options(&self) -> RequestOptions {
        RequestOptions {
            temperature: self.number("temperature"),
            top_p: self.number("top_p"),
            max_output_tokens: self
                .whole("max_output_tokens")
                .map(|number| u32::try_from(number).unwrap_or(u32::MAX)),
            reasoning_effort: self.text("reasoning_effort").map(str::to_owned),
            ..RequestOptions::default()
        }
    }

    /// When to ask the user for approval.
    pub(crate) fn approve(&self) -> ApprovalMode {
        self.word("approve").unwrap_or_default()
    }

    /// Whether commands are sandboxed.
    pub(crate) fn sandbox(&self) -> SandboxMode {
        self.word("sandbox").unwrap_or_default()
    }

    /// The display for the computer use tool.
    pub(crate) fn display(&self) -> Option<DisplayNumber> {
        self.text("computer.display")?.parse().ok()
    }

    /// Journal options.
    pub(crate) fn journal(&self) -> JournalOptions {
        let default = JournalOptions::default();
        JournalOptions {
            durability: self.word("journal_durability").unwrap_or_default(),
            max_bytes: self.whole("journal_max_mb").map_or(default.max_bytes, |mb| mb << 20),
            ..default
        }
    }
}

/// Validates a flag's value like a file's. The error does not repeat the value because it may contain a
/// password.
fn checked(key: &Key, value: Value) -> Result<Value, CliError> {
    let Value::Text(text) = &value else { return Ok(value) };
    key.kind.read_text(text).map_err(|misfit| {
        let failure = CliError::usage(format!("{}: {}", key.flag.unwrap_or(key.name), misfit.message));
        match misfit.help {
            Some(help) => failure.help(help),
            None => failure,
        }
    })
}

/// The text of a line, counted from 1.
fn line_span(text: &str, line: usize) -> Span {
    let mut start = 0;
    for (n, content) in text.split_inclusive('\n').enumerate() {
        if n + 1 == line {
            return Span::new(start, start + content.trim_end().len());
        }
        start += content.len();
    }
    Span::at(0)
}

/// The problems of one configuration or agent file, and its text if it can be read. Settings that need trust
/// are checked as if the file had it.
pub(crate) fn check_file(path: &Path, name: &str, whose: FileOwner) -> (Diagnostics, Option<Source>) {
    let mut problems = Diagnostics::new();
    let source = file::read(path, |_| whose, &mut problems).map(|(source, content)| {
        let mut config = Config::built_in();
        config.add_content(content, Layer::ProjectFile);
        for FlowProblem { key, message, help, is_error } in config.flow_problems() {
            let line = match config.value(key) {
                Some((_, ValueOrigin::File { line, .. })) => *line,
                _ => 1,
            };
            let span = line_span(source.text(), line);
            let problem = match is_error {
                true => Diagnostic::error("wrong-value", &source, span, message),
                false => Diagnostic::warning("unknown-tool", &source, span, message),
            };
            problems.push(problem.maybe_help(help));
        }
        source
    });
    if whose == FileOwner::Project {
        file::read(path, |_| FileOwner::TrustedProject, &mut problems);
    }
    // Report the file under the name the user typed.
    let named = |mut problem: Diagnostic| {
        problem.file = name.into();
        problem
    };
    let problems = problems.into_sorted().into_iter().map(named).collect();
    (problems, source.map(|source| Source::new(name, source.text())))
}

/// Keys whose value is a command that the runtime runs; stages contain them as well.
const COMMAND_KEYS: [&str; 3] = ["verify", "before.run", "after.run"];

/// Whether the user has trusted a project's file as it is now.
fn trusts(environment: &Environment, file: &Path) -> bool {
    project_owner(environment, file) == FileOwner::TrustedProject
}

/// Whose file a project's `fusee.toml` is as it is now; a project without one is trusted with an empty one.
fn project_owner(environment: &Environment, file: &Path) -> FileOwner {
    use fusee::engine::tools::workspace::bounded_read::read_text;
    let text = match read_text(file, MAX_BYTES) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(_) => return FileOwner::Project,
        Ok(text) => text,
    };
    Trust::read(environment).owner(file, &text)
}

fn built_in() -> BTreeMap<&'static str, (Value, ValueOrigin)> {
    let value = |key: &'static Key| key.default.and_then(|text| key.kind.read_text(text).ok());
    KEYS.iter().filter_map(|key| value(key).map(|value| (key.name, (value, ValueOrigin::BuiltIn)))).collect()
}
