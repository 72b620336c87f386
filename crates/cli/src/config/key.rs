//! The table of configuration keys. Parsing, `fusee config`, the JSON Schema and the reference page are all
//! derived from it, so they cannot disagree.

use super::flow_keys::FLOW_KEYS;
use super::value::Kind;

/// A configuration key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Dotted path in a file.
    pub(crate) name: &'static str,
    /// Type of its value.
    pub(crate) kind: Kind,
    /// Default as text; `None` if the key is unset by default.
    pub(crate) default: Option<&'static str>,
    /// One-sentence description for help, schema and reference page.
    pub(crate) doc: &'static str,
    /// Which files may set it.
    pub(crate) reach: KeyScope,
    /// The flag that sets it, if any.
    pub(crate) flag: Option<&'static str>,
}

/// How far the effect of a key reaches, which decides which files may set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyScope {
    /// Within the workspace: any file may set it.
    Workspace,
    /// Outside the workspace: a project's file may set it only once trusted, since its author is not the
    /// user.
    Outside,
}

/// Another name for a key, as spelled in the agent specification.
#[derive(Debug)]
pub(crate) struct Alias {
    pub(crate) name: &'static str,
    pub(crate) key: &'static str,
    pub(crate) unit: Unit,
}

/// Unit of a number given under an alias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The unit of the key.
    Same,
    /// Milliseconds, where the key takes seconds.
    Milliseconds,
}

const PRICE: Kind = Kind::Number { least: 0.0, most: 1e6 };

const MANY: u64 = i64::MAX as u64;

/// Names of [`Wire`](fusee::engine::model::Wire).
pub(crate) const APIS: &[&str] = &["chat", "responses", "anthropic"];
/// Names of [`ApprovalMode`](fusee::engine::approval::ApprovalMode).
pub(crate) const APPROVALS: &[&str] = &["auto", "ask", "never"];
/// Names of [`SandboxMode`](fusee::engine::run::SandboxMode).
pub(crate) const SANDBOX_MODES: &[&str] = &["on", "off"];
/// Names of [`ToolFormat`](fusee::engine::model::ToolFormat).
const TOOL_FORMATS: &[&str] = &["native", "text", "schema"];

/// All keys, in display order.
pub(crate) const KEYS: &[Key] = &joined::<{ BASE.len() + FLOW_KEYS.len() }>(BASE, FLOW_KEYS);

/// Keys that are not about flows.
const BASE: &[Key] = &[
    key("model", Kind::Text, None, "Model to use: PROVIDER:MODEL, an entry of [models], local:FILE.gguf, script:FILE or replay:FILE.")
        .flag("--model"),
    key("base_url", Kind::Url, None, "Base URL of the model server, including the version path.")
        .flag("--base-url")
        .outside(),
    key("api", Kind::Word(APIS), None, "API spoken by the server; the provider's own, or `chat`, if not set.").flag("--api"),
    key(
        "tool_format",
        Kind::Word(TOOL_FORMATS),
        None,
        "How the model makes tool calls: native (the server's tool API), text (tags in the reply), schema (replies \
         constrained to an available call); taken from its profile if not set.",
    ),
    key(
        "approve",
        Kind::Word(APPROVALS),
        Some("auto"),
        "When to ask for approval: auto (only for calls that are not sandboxed, never with the sandbox off), ask (before \
         every change), never (refuse instead of asking).",
    )
    .flag("--approve")
    .outside(),
    key("sandbox", Kind::Word(SANDBOX_MODES), Some("on"), "Whether to run commands in the sandbox; off runs them unsandboxed.")
        .flag("--sandbox")
        .outside(),
    key(
        "sandbox.network",
        Kind::Word(&["off", "on"]),
        Some("off"),
        "Whether sandboxed commands can access the network, or only a private loopback interface.",
    )
    .flag("--allow-net")
    .outside(),
    key(
        "network.allow",
        Kind::Hosts,
        None,
        "Hosts that sandboxed commands and fetch_url can reach by name; `*.example.org` matches every host below example.org.",
    )
    .outside(),
    key(
        "network.ask",
        Kind::Switch,
        Some("false"),
        "Whether to ask about each other host that a sandboxed command or fetch_url tries to reach; otherwise it is refused.",
    )
    .outside(),
    key(
        "diagnostics",
        Kind::Word(&["off", "on"]),
        Some("off"),
        "Whether to check each file that the model edits and show it new errors.",
    )
    .outside(),
    key(
        "diagnostics.commands",
        Kind::Texts,
        None,
        "Check commands by file extension, such as { py = \"ruff check --output-format concise {file}\" }; other files are \
         checked by an installed language server (rust-analyzer, pyright, gopls, typescript-language-server).",
    )
    .outside(),
    key(
        "diagnostics.timeout_s",
        Kind::Number { least: 0.1, most: 60.0 },
        Some("2"),
        "Maximum time of a check in seconds; later results are not shown.",
    ),
    key(
        "web.robots",
        Kind::Word(&["obey", "ignore"]),
        Some("obey"),
        "Whether fetch_url obeys the robots.txt of a site.",
    )
    .outside(),
    key(
        "web_search.service",
        Kind::Word(&["searxng", "brave", "tavily"]),
        None,
        "Search service for the tool web_search; required for the tool.",
    )
    .outside(),
    key(
        "web_search.url",
        Kind::Url,
        None,
        "URL of the search service; the service's public URL if not set. Required for searxng.",
    )
    .outside(),
    key(
        "web_search.api_key_env",
        Kind::Text,
        None,
        "Environment variable that holds the key of the search service; BRAVE_API_KEY or TAVILY_API_KEY if not set.",
    )
    .outside(),
    key("sandbox.read", Kind::Paths, None, "Additional paths that sandboxed commands can read.").outside(),
    key("sandbox.write", Kind::Paths, None, "Additional existing paths that sandboxed commands can write.").outside(),
    key(
        "sandbox.memory_mb",
        whole(16, MANY >> 20),
        None,
        "Memory limit of a sandboxed command and its child processes, in MiB; three quarters of the machine's memory if not \
         set.",
    )
    .outside(),
    key("sandbox.processes", whole(8, 1 << 22), Some("2048"), "Maximum number of processes and threads of a sandboxed command.").outside(),
    key("sandbox.cpu_s", whole(1, MANY), Some("7200"), "Maximum CPU time of a sandboxed command in seconds, summed over its processes.")
        .outside(),
    key("sandbox.file_mb", whole(1, MANY >> 20), Some("16384"), "Maximum size of a file written by a sandboxed command, in MiB.").outside(),
    key(
        "computer.display",
        Kind::Display,
        None,
        "Local X11 display, such as `:99`, for the computer use tool of Anthropic's models; required for the tool. \
         Programs started by commands can use it too.",
    )
    .outside(),
    key("max_turns", whole(1, u32::MAX as u64), Some("50"), "Maximum number of model replies in a task.").flag("--max-turns"),
    key("max_tokens", whole(1, MANY), Some("100000"), "Maximum number of tokens in the conversation.")
        .flag("--max-tokens"),
    key(
        "compaction_threshold",
        Kind::Number { least: 0.05, most: 1.0 },
        Some("0.75"),
        "Fraction of max_tokens at which the conversation is compacted.",
    ),
    key(
        "mcp_context_share",
        Kind::Number { least: 0.0, most: 1.0 },
        Some("0.1"),
        "Maximum fraction of max_tokens for sending the definitions of MCP tools with each request; if they take more, \
         the model finds them with find_tools and calls them with call_tool.",
    ),
    key(
        "compaction_summary",
        Kind::Word(&["rule", "model"]),
        Some("rule"),
        "What writes the compaction summary: rule (one line per turn), or model (one more request; falls back to rule).",
    ),
    key(
        "memory_ranking",
        Kind::Word(&["words", "model"]),
        Some("words"),
        "What ranks the files found for a task: words (by shared words), or model (one more request; falls back to words).",
    ),
    key(
        "timeout_s",
        Kind::Number { least: 0.001, most: 86_400.0 },
        Some("300"),
        "Maximum time a model may stay silent, in seconds. For a server on this machine, the same time is added for each 16 KiB of the prompt.",
    ),
    key(
        "task_timeout_s",
        whole(1, u32::MAX as u64),
        None,
        "Maximum working time of a task in seconds, not counting time spent waiting for the user.",
    )
    .flag("--timeout"),
    key(
        "approval_timeout_s",
        whole(1, u32::MAX as u64),
        Some("3600"),
        "Maximum time to wait for the answer to a question, in seconds; without an answer the call is refused.",
    ),
    key(
        "loading_timeout_s",
        whole(0, 86_400),
        Some("600"),
        "Maximum time a server may take to load its model before it counts as unreachable, in seconds.",
    ),
    key(
        "patience_s",
        whole(0, u32::MAX as u64),
        None,
        "How long to wait for an unreachable model, in seconds; replaces retry_policy.max_retries and loading_timeout_s.",
    )
    .flag("--patience"),
    key("subtask_depth", whole(0, 100), Some("5"), "Maximum nesting of subtasks; 0 for no subtasks."),
    key(
        "review_mode_restrictions.allowed_tools",
        Kind::Names,
        None,
        "With --review: tools that run without approval; the read-only ones if not set.",
    )
    .outside(),
    key(
        "review_mode_restrictions.require_approval",
        Kind::Switch,
        Some("true"),
        "With --review: whether to ask for approval of other tools; otherwise they are refused.",
    ),
    key("review_mode_restrictions.max_tool_calls", whole(0, u32::MAX as u64), Some("100"), "With --review: maximum number of tool calls in a task."),
    key(
        "review_mode_restrictions.require_explanations",
        Kind::Switch,
        Some("false"),
        "With --review: refuse a call that needs approval unless the model explains its purpose.",
    ),
    key("budget_usd", Kind::Number { least: 0.0, most: 1e9 }, None, "Maximum cost of a task, in US dollars.")
        .flag("--budget-usd")
        .outside(),
    key("price.input", PRICE, None, "US dollars per million prompt tokens, if the model's price is not known.").outside(),
    key("price.output", PRICE, None, "US dollars per million reply tokens.").outside(),
    key("price.cached", PRICE, None, "US dollars per million prompt tokens read from the server's cache.").outside(),
    key("retry_policy.max_retries", whole(0, 1000), Some("4"), "Maximum number of retries of a failed request."),
    key(
        "retry_policy.backoff_ms",
        whole(0, 600_000),
        Some("200"),
        "Delay before the first retry, in milliseconds; doubled for each further retry, up to 30 s.",
    ),
    key("temperature", Kind::Number { least: 0.0, most: 5.0 }, None, "Sampling temperature; the server's default if not set. Not sent if the profile has fixed_sampling."),
    key("top_p", Kind::Number { least: 0.0, most: 1.0 }, None, "Nucleus sampling; the server's default if not set. Not sent if the profile has fixed_sampling."),
    key("max_output_tokens", whole(1, u32::MAX as u64), None, "Maximum number of tokens in a reply; the server's default if not set."),
    key("reasoning_effort", Kind::Text, None, "Reasoning effort: low, medium, high, or another value the server supports."),
    key("log_file", Kind::Text, None, "File to append the log of every run to, in the format of `fusee show --log`.").outside(),
    key("otlp_endpoint", Kind::Url, None, "OpenTelemetry collector to send runs to, over OTLP/HTTP; OTEL_EXPORTER_OTLP_ENDPOINT overrides it.").outside(),
    key(
        "journal_durability",
        Kind::Word(&["process", "power"]),
        Some("process"),
        "What a commit survives: process (a killed process), or power (also a power loss; one fsync per commit).",
    ),
    key(
        "journal_max_mb",
        whole(1, MANY >> 20),
        Some("1024"),
        "Size limit of the journal in MiB; if it is larger when a run starts, the oldest finished runs are removed.",
    ),
    key(
        "notify",
        Kind::Word(&["off", "bell", "osc9", "osc777"]),
        Some("off"),
        "How the terminal notifies you that a run needs you or has ended: off, bell, osc9 or osc777 (escape sequences \
         for desktop notifications).",
    ),
    key(
        "notify_command",
        Kind::Text,
        None,
        "Command to run with `sh` when a run needs you or has ended, for at most 10 s, with FUSEE_NOTIFY_EVENT (needs_you, \
         completed, failed, cancelled), FUSEE_NOTIFY_RUN, FUSEE_NOTIFY_TITLE and FUSEE_NOTIFY_TEXT in its environment.",
    )
    .outside(),
    key("color", Kind::Word(&["auto", "always", "never"]), Some("auto"), "Whether to use colours in the terminal; NO_COLOR is respected."),
];

/// The keys of a `[models.NAME]` entry.
pub(crate) const MODEL_KEYS: &[Key] = &[
    key("model", Kind::Text, None, "PROVIDER:MODEL, or the model's id on its server."),
    key("base_url", Kind::Url, None, "Base URL of its server, including the version path."),
    key("api", Kind::Word(APIS), None, "API spoken by the server."),
    key("api_key_env", Kind::Text, None, "Environment variable that holds its API key."),
    key("context_tokens", whole(1, MANY), None, "Context size in tokens, if the server does not report it."),
    key("tool_format", Kind::Word(TOOL_FORMATS), None, "How it makes tool calls: native, text or schema."),
];

/// Names from the agent specification that are accepted as well.
pub(crate) const ALIASES: &[Alias] = &[
    alias("sandbox.mode", "sandbox"),
    alias("diagnostics.mode", "diagnostics"),
    alias("maxTurns", "max_turns"),
    alias("maxTokens", "max_tokens"),
    alias("compactionSummary", "compaction_summary"),
    alias("compactionThreshold", "compaction_threshold"),
    Alias { name: "timeout", key: "timeout_s", unit: Unit::Milliseconds },
    alias("reviewModeRestrictions.allowedTools", "review_mode_restrictions.allowed_tools"),
    alias("reviewModeRestrictions.requireApproval", "review_mode_restrictions.require_approval"),
    alias("reviewModeRestrictions.maxToolCalls", "review_mode_restrictions.max_tool_calls"),
    alias("reviewModeRestrictions.requireExplanations", "review_mode_restrictions.require_explanations"),
    alias("retryPolicy.maxRetries", "retry_policy.max_retries"),
    alias("retryPolicy.backoffMs", "retry_policy.backoff_ms"),
];

impl Key {
    /// Looks up a key by name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The environment variable that sets it.
    pub(crate) fn variable(&self) -> String {
        format!("FUSEE_{}", self.name.replace('.', "_").to_uppercase())
    }

    pub(super) const fn flag(mut self, flag: &'static str) -> Self {
        self.flag = Some(flag);
        self
    }

    const fn outside(mut self) -> Self {
        self.reach = KeyScope::Outside;
        self
    }
}

pub(super) const fn key(
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    doc: &'static str,
) -> Key {
    Key { name, kind, default, doc, reach: KeyScope::Workspace, flag: None }
}

const fn alias(name: &'static str, key: &'static str) -> Alias {
    Alias { name, key, unit: Unit::Same }
}

pub(super) const fn whole(least: u64, most: u64) -> Kind {
    Kind::Whole { least, most }
}

const fn joined<const N: usize>(first: &[Key], second: &[Key]) -> [Key; N] {
    let mut keys = [first[0]; N];
    let mut at = 0;
    while at < N {
        keys[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    keys
}
