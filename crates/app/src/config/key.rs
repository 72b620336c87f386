//! The table of configuration keys. Parsing, `fusee config`, the JSON Schema and the reference page all come from
//! it, so none of them can say something else than the others.

use super::flow_key::FLOW_KEYS;
use super::value::Kind;

/// One key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Its path in a file, parts joined by dots.
    pub(crate) name: &'static str,
    /// What it may hold.
    pub(crate) kind: Kind,
    /// What holds if nobody says anything; `None` is nothing at all.
    pub(crate) default: Option<&'static str>,
    /// One sentence for people.
    pub(crate) doc: &'static str,
    /// Who may set it.
    pub(crate) reach: Reach,
    /// The flag that sets it, if one does.
    pub(crate) flag: Option<&'static str>,
}

/// How far the effect of a key reaches, which decides who may set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Within the workspace: any file may.
    Workspace,
    /// Outside of it: a project's file may not before it is trusted, since whoever wrote the project would decide.
    Outside,
}

/// Another name for a key, as the specification of the agent spells it.
#[derive(Debug)]
pub(crate) struct Alias {
    pub(crate) name: &'static str,
    pub(crate) key: &'static str,
    pub(crate) unit: Unit,
}

/// What a number under an alias counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// The same as the key.
    Same,
    /// Milliseconds, where the key counts seconds.
    Milliseconds,
}

const PRICE: Kind = Kind::Number { least: 0.0, most: 1e6 };

const MANY: u64 = i64::MAX as u64;

const APIS: &[&str] = &["chat", "responses", "anthropic"];
const TOOL_FORMATS: &[&str] = &["native", "text", "schema"];

/// All keys, in the order they are shown.
pub(crate) const KEYS: &[Key] = &joined::<{ BASE.len() + FLOW_KEYS.len() }>(BASE, FLOW_KEYS);

/// The keys of any task.
const BASE: &[Key] = &[
    key("model", Kind::Text, None, "The model: PROVIDER:MODEL, an entry of [models], local:FILE.gguf, script:FILE or replay:FILE.")
        .flag("--model"),
    key("base_url", Kind::Url, None, "Where the model's server is, version path included.")
        .flag("--base-url")
        .outside(),
    key("api", Kind::Word(APIS), None, "What the server speaks; `chat` unless the provider says otherwise.").flag("--api"),
    key(
        "tool_format",
        Kind::Word(TOOL_FORMATS),
        None,
        "How the model is asked for calls: native (its server's own way), text (tags in its text), schema (replies \
         constrained to a call that is open); as its profile says if not set.",
    ),
    key(
        "approve",
        Kind::Word(&["auto", "ask", "never"]),
        Some("auto"),
        "When a person is asked: auto (not for what the sandbox confines, nor with the sandbox off), ask (before \
         anything changes), never (what would be asked is refused).",
    )
    .flag("--approve")
    .outside(),
    key("sandbox", Kind::Word(&["on", "off"]), Some("on"), "Whether commands are confined.")
        .flag("--sandbox")
        .outside(),
    key(
        "sandbox.network",
        Kind::Word(&["off", "on"]),
        Some("off"),
        "Whether confined commands reach the machine's network, or only a loopback of their own.",
    )
    .flag("--allow-net")
    .outside(),
    key("sandbox.read", Kind::Paths, None, "More that confined commands may read.").outside(),
    key("sandbox.write", Kind::Paths, None, "More that confined commands may change; it must exist.").outside(),
    key(
        "sandbox.memory_mb",
        whole(16, MANY >> 20),
        None,
        "Memory of a confined command with all it starts; three quarters of the machine's if not set.",
    )
    .outside(),
    key("sandbox.processes", whole(8, 1 << 22), Some("2048"), "Its processes and threads at once.").outside(),
    key("sandbox.cpu_s", whole(1, MANY), Some("7200"), "Its processor time in seconds, all processes together.")
        .outside(),
    key("sandbox.file_mb", whole(1, MANY >> 20), Some("16384"), "The size of any one file that it writes.").outside(),
    key("max_turns", whole(1, u32::MAX as u64), Some("50"), "Replies of the model in one task.").flag("--max-turns"),
    key("max_tokens", whole(1, MANY), Some("100000"), "Tokens that the conversation may hold at once.")
        .flag("--max-tokens"),
    key(
        "compaction_threshold",
        Kind::Number { least: 0.05, most: 1.0 },
        Some("0.75"),
        "The share of max_tokens from which the conversation is shortened.",
    ),
    key(
        "compaction_summary",
        Kind::Word(&["rule", "model"]),
        Some("rule"),
        "Who tells of the turns that are taken away then: rule (one line a turn), or model (one more request; the rule \
         where it fails).",
    ),
    key(
        "memory_ranking",
        Kind::Word(&["words", "model"]),
        Some("words"),
        "Who orders the files that are searched for a task: words (those they share with it), or model (one more \
         request; the words where it fails).",
    ),
    key("timeout_s", whole(1, 86_400), Some("300"), "How long a model may say nothing, in seconds."),
    key(
        "task_timeout_s",
        whole(1, u32::MAX as u64),
        None,
        "Working time of a whole task, in seconds; waiting for a person does not count.",
    )
    .flag("--timeout"),
    key(
        "approval_timeout_s",
        whole(1, u32::MAX as u64),
        Some("3600"),
        "How long one question waits for a person, in seconds; without an answer it is a refusal.",
    ),
    key(
        "loading_timeout_s",
        whole(0, 86_400),
        Some("600"),
        "How long a server may take to load its model before it counts as unreachable, in seconds.",
    ),
    key(
        "review_mode_restrictions.allowed_tools",
        Kind::Names,
        None,
        "With --review: the tools that run without a question; those that only look if not set.",
    )
    .outside(),
    key(
        "review_mode_restrictions.require_approval",
        Kind::Switch,
        Some("true"),
        "With --review: whether a person is asked about other tools; otherwise they are refused.",
    ),
    key("review_mode_restrictions.max_tool_calls", whole(0, u32::MAX as u64), Some("100"), "With --review: calls of one task."),
    key(
        "review_mode_restrictions.require_explanations",
        Kind::Switch,
        Some("false"),
        "With --review: a call that a person must allow is refused unless the model says in words what it is for.",
    ),
    key("budget_usd", Kind::Number { least: 0.0, most: 1e9 }, None, "What a whole task may cost, in US dollars.")
        .flag("--budget-usd")
        .outside(),
    key("price.input", PRICE, None, "US dollars for a million tokens of prompt, where the price is not known.").outside(),
    key("price.output", PRICE, None, "US dollars for a million tokens of reply.").outside(),
    key("price.cached", PRICE, None, "US dollars for a million tokens of prompt from the server's cache.").outside(),
    key("retry_policy.max_retries", whole(0, 1000), Some("4"), "Tries of a failed request after the first."),
    key(
        "retry_policy.backoff_ms",
        whole(0, 600_000),
        Some("200"),
        "The wait before the first of them, in milliseconds; each further one is twice as long, up to 30 s.",
    ),
    key("temperature", Kind::Number { least: 0.0, most: 5.0 }, None, "Sampling temperature; the server's own if not set. Not sent where a profile has fixed_sampling."),
    key("top_p", Kind::Number { least: 0.0, most: 1.0 }, None, "Nucleus sampling; the server's own if not set. Not sent where a profile has fixed_sampling."),
    key("max_output_tokens", whole(1, u32::MAX as u64), None, "Upper bound of one reply; the server's own if not set."),
    key("reasoning_effort", Kind::Text, None, "low, medium, high, or what the server knows."),
    key(
        "journal_durability",
        Kind::Word(&["process", "power"]),
        Some("process"),
        "What a commit survives: the end of the process, or a loss of power too (an fsync a commit).",
    ),
    key(
        "journal_max_mb",
        whole(1, MANY >> 20),
        Some("1024"),
        "When a run begins and the journal holds more, the oldest ended runs are removed.",
    ),
    key("color", Kind::Word(&["auto", "always", "never"]), Some("auto"), "Whether the terminal gets colours; NO_COLOR is honoured."),
];

/// The keys of an entry of `[models.NAME]`.
pub(crate) const MODEL_KEYS: &[Key] = &[
    key("model", Kind::Text, None, "The model: PROVIDER:MODEL, or the id its server knows it by."),
    key("base_url", Kind::Url, None, "Where its server is, version path included."),
    key("api", Kind::Word(APIS), None, "What the server speaks."),
    key("api_key_env", Kind::Text, None, "The environment variable that holds its key."),
    key("context_tokens", whole(1, MANY), None, "The size of its context, where the server does not tell."),
    key("tool_format", Kind::Word(TOOL_FORMATS), None, "How it is asked for calls: native, text or schema."),
];

/// Names of the specification that are accepted as well.
pub(crate) const ALIASES: &[Alias] = &[
    alias("sandbox.mode", "sandbox"),
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
    /// The key called so.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The keys that a project's file may set only once it is trusted.
    pub(crate) fn outside_keys() -> impl Iterator<Item = &'static Self> {
        KEYS.iter().filter(|key| key.reach == Reach::Outside)
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
        self.reach = Reach::Outside;
        self
    }
}

pub(super) const fn key(
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    doc: &'static str,
) -> Key {
    Key { name, kind, default, doc, reach: Reach::Workspace, flag: None }
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
