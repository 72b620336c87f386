//! Starting runs for other programs. A front end (benchmark, web page, MCP, ACP) describes the run it wants as a
//! [`LaunchRequest`] and gives it to a [`Launcher`], which knows the user's configuration, models and sandbox. The
//! command line implements the launcher, so that a run means the same wherever it was started.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fusee_engine::approval::rules::ApprovalRule;
use fusee_engine::approval::{ApprovalMode, Approver};
use fusee_engine::journal::{BoxFuture, Journal, RunId};
use fusee_engine::lang::Param;
use fusee_engine::model::{Image, Price};
use fusee_engine::run::RunHandle;
use fusee_engine::tools::{OpenDocuments, Tool};
use serde_json::{Map, Value};

/// The request of `/init`.
pub const INIT_REQUEST: &str = "Write AGENTS.md in the top directory of this project: what an agent needs to know to work here. \
Look at the project first: its files, its build and test commands, its conventions. State the commands to build, to test \
and to run a single test, how the code is organised, and the rules that the code follows and a newcomer would not guess. \
Be exact and short, at most 60 lines; leave out what every project has in common. If AGENTS.md exists, improve it.";

/// Starts and resumes runs as the user has configured them.
pub trait Launcher: Send + Sync {
    /// The directory of requests that name none.
    fn directory(&self) -> &Path;

    /// Starts a run. It is working when this returns.
    fn start(&self, request: LaunchRequest) -> BoxFuture<'_, Result<RunHandle, LaunchError>>;

    /// Resumes a run of the project that `directory` belongs to, with the settings it was started with. A run that
    /// has ended gives its result again.
    fn resume<'a>(
        &'a self,
        directory: &'a Path,
        run: &'a RunId,
        with: ResumeRequest,
    ) -> BoxFuture<'a, Result<RunHandle, LaunchError>>;

    /// Opens the journal of the project that `directory` belongs to; `None` if nothing has been run there.
    fn journal(&self, directory: &Path) -> Result<Option<Journal>, LaunchError>;

    /// Opens the journal of a project to which answers are written. Refuses a journal that the user's own runs did not
    /// create.
    fn open_journal(&self, directory: &Path) -> Result<Journal, LaunchError>;

    /// The folder for the worktrees of forks of a project.
    fn worktrees(&self, directory: &Path) -> Result<PathBuf, LaunchError>;

    /// Saves approvals that the user gave for every run of a project.
    fn save_rules(&self, directory: &Path, rules: Vec<ApprovalRule>) -> Result<(), LaunchError>;

    /// Directories of the projects in which the user has run something.
    fn projects(&self) -> Vec<PathBuf>;

    /// Names of the models that can be chosen in `directory`; the configured one first.
    fn models(&self, directory: &Path) -> Result<Vec<String>, LaunchError>;

    /// When runs in `directory` ask for approval, unless they say otherwise.
    fn approval(&self, directory: &Path) -> Result<ApprovalMode, LaunchError>;

    /// The templates and workflows that can be started by name in `directory`.
    fn tasks(&self, directory: &Path) -> Result<Vec<NamedTask>, LaunchError>;

    /// The Markdown commands of the project that `directory` belongs to: their names, and a line about each.
    fn markdown_commands(&self, directory: &Path) -> Vec<(String, String)>;

    /// The request that a line such as `/NAME ARGUMENTS` stands for; `None` if it names no Markdown command.
    fn expand_command(&self, directory: &Path, line: &str) -> Option<String>;

    /// The system prompt of a request in `directory`, by section, as far as it is known before a run.
    fn prompt(&self, directory: &Path) -> Result<Vec<PromptPart>, LaunchError>;

    /// What a request would run with, without starting or spending anything. Fails as [`Self::start`] would.
    fn plan(&self, request: LaunchRequest) -> BoxFuture<'_, Result<LaunchPlan, LaunchError>>;

    /// A run in a format of other tools, as text.
    fn export(&self, directory: &Path, run: &RunId, format: RunExport) -> Result<String, LaunchError>;
}

/// Format of an exported run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunExport {
    /// The model's replies, for `--model replay:FILE`.
    Cassette,
    /// Trajectory of Harbor (ATIF).
    Atif,
}

/// What a run would do.
#[derive(Clone, Debug)]
pub struct LaunchPlan {
    /// Model; empty for a workflow that asks none.
    pub model: String,
    /// Context size of the model in tokens, if known.
    pub context_tokens: Option<u64>,
    /// Prices of its tokens, if known.
    pub price: Option<Price>,
    /// When it would ask for approval.
    pub approve: ApprovalMode,
    /// Whether commands would be confined: `on` or `off`.
    pub sandbox: &'static str,
    /// Flow; absent for templates and workflows, which name their own.
    pub flow: Option<String>,
    /// Command that would verify the work.
    pub verify: Option<String>,
    /// Limits in force.
    pub limits: LaunchLimits,
    /// The first request to the model; empty for a workflow.
    pub prompt: Vec<PromptPart>,
    /// The calls of a workflow, and how many of them are certain, as `fusee task --dry-run` lists them.
    pub calls: String,
}

/// Titled text of a prompt: a section, or the request itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptPart {
    /// Title of the part.
    pub title: String,
    /// Text that the model receives.
    pub text: String,
}

/// A run to start. Whatever is not set comes from the configuration of the user and the project.
#[derive(Clone, Default)]
pub struct LaunchRequest {
    /// What to run.
    pub work: LaunchWork,
    /// Directory to work in [default: that of the launcher].
    pub directory: Option<PathBuf>,
    /// Directory whose project gives the configuration, the templates and the journal [default: that of the run].
    pub project: Option<PathBuf>,
    /// Path at which the model and its commands see the directory, where the sandbox can do that [default: its own].
    pub shown_at: Option<PathBuf>,
    /// Id of the run [default: a new one].
    pub run: Option<RunId>,
    /// Model, as for `--model`.
    pub model: Option<String>,
    /// Base URL of the model's server.
    pub base_url: Option<String>,
    /// Wire format of the model, as for `--api`.
    pub api: Option<String>,
    /// Agent file.
    pub agent: Option<PathBuf>,
    /// Flow, as for `--flow`.
    pub flow: Option<String>,
    /// Command that verifies the work, as for `--verify`.
    pub verify: Option<String>,
    /// When to ask for approval.
    pub approve: Option<ApprovalMode>,
    /// Overrides of the configured limits.
    pub limits: LaunchLimits,
    /// The ended run whose conversation this one continues.
    pub continues: Option<RunId>,
    /// Additional context.
    pub background: Option<String>,
    /// Images of the request. A run whose model takes none is not started.
    pub images: Vec<Image>,
    /// Reasoning effort of the model, as the configuration key.
    pub reasoning_effort: Option<String>,
    /// Whether tests are protected and the run reports as a benchmark; the number of the try.
    pub benchmark_try: Option<u32>,
    /// Files that a benchmark protects besides those that look like tests; relative to the directory.
    pub protected_files: Vec<String>,
    /// MCP servers besides the configured ones; one of the same name replaces it.
    pub mcp_servers: Vec<LaunchMcpServer>,
    /// Tools beyond those of the configuration.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Answers questions of the run. Without one they wait for an answer from outside, see
    /// [`fusee_engine::approval::signal_name`].
    pub approver: Option<Arc<dyn Approver>>,
    /// Files that are open in the user's editor.
    pub documents: Option<Arc<dyn OpenDocuments>>,
}

/// What the program that resumes a run adds to it; everything else is recorded with the run.
#[derive(Clone, Default)]
pub struct ResumeRequest {
    /// Answers questions of the run. Without one they wait for an answer from outside.
    pub approver: Option<Arc<dyn Approver>>,
    /// MCP servers besides the configured ones, which offer the tools that the run started with.
    pub mcp_servers: Vec<LaunchMcpServer>,
    /// Files that are open in the user's editor.
    pub documents: Option<Arc<dyn OpenDocuments>>,
}

/// An MCP server whose tools a run uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchMcpServer {
    /// Name of the server: 1 to 32 of A-Z a-z 0-9 _ -.
    pub name: String,
    /// How it is reached.
    pub transport: LaunchMcpTransport,
}

/// How an MCP server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchMcpTransport {
    /// A program and its arguments, started with these environment variables.
    Program {
        /// The program and its arguments.
        command: Vec<String>,
        /// Environment variables.
        env: Vec<(String, String)>,
    },
    /// A URL, over streamable HTTP with these headers.
    Address {
        /// Server address as the client sent it.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
    },
}

/// What a run works on.
#[derive(Clone, Debug, PartialEq)]
pub enum LaunchWork {
    /// A request in plain words.
    Request(String),
    /// A template or a registered workflow by name.
    Named {
        /// Template or workflow as listed by [`NamedTask::name`].
        name: String,
        /// Values by parameter; checked against the declared types.
        inputs: Map<String, Value>,
    },
    /// A workflow as text.
    Workflow(String),
    /// A code review.
    Review {
        /// What to look at; empty for everything.
        request: String,
        /// Commit to compare with; the whole project without one.
        base: Option<String>,
        /// Files or folders.
        paths: Vec<String>,
    },
}

impl Default for LaunchWork {
    fn default() -> Self {
        Self::Request(String::new())
    }
}

/// Limits of a run; those that are not set come from the configuration.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct LaunchLimits {
    /// Maximum number of model replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Maximum number of tokens in the context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Maximum working time in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
    /// How long an unreachable model is waited for, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_s: Option<u64>,
    /// Maximum cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<f64>,
}

/// A template or workflow that can be started by name.
#[derive(Clone, Debug)]
pub struct NamedTask {
    /// Identifier that a request uses to start it.
    pub name: String,
    /// Which of the two it is.
    pub kind: NamedTaskKind,
    /// What it does.
    pub description: String,
    /// Typed inputs, in their order.
    pub inputs: Vec<Param>,
    /// JSON Schema of its output, where it declares one.
    pub output_schema: Option<Value>,
    /// Source text.
    pub text: String,
}

/// Where a named task is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NamedTaskKind {
    /// An XML template.
    Template,
    /// An S-expression program with declared parameters.
    Workflow,
}

/// Why a run could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchError {
    /// Who can fix it.
    pub kind: LaunchErrorKind,
    /// What is wrong, on what and why.
    pub message: String,
    /// What to do next.
    pub help: Option<String>,
}

/// Decides the exit code, HTTP status or JSON-RPC code of a [`LaunchError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchErrorKind {
    /// The request or the configuration is wrong.
    Usage,
    /// The model cannot be reached.
    Unreachable,
    /// Something else failed.
    Failed,
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for LaunchError {}
