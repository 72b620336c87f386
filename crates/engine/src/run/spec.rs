//! Settings of a run, journaled as step 0. Resuming needs no flags, and a run ends on the settings it started
//! with. API keys are never stored, only the names of their sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fusee_journal::RunId;
use fusee_model::{Image, Message, ModelTraits, Price, RequestOptions, ResolvedModel, Wire};
use fusee_tools::diagnostics::DiagnosticSettings;
use fusee_tools::host_proxy::HostRules;
use fusee_tools::mcp::OfferedTool;
use fusee_tools::sandbox::{MovedFolder, Network, ResourceLimits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::origin::RunOrigin;
use super::run_kind::{JsonOutput, RunKind};
use super::web_tools::WebSettings;
use crate::agent::flow::FlowSettings;
use crate::agent::{Limits, Plan, PricedModel, ReviewPolicy, RunPolicy};
use crate::approval::ApprovalMode;
use crate::approval::rules::ApprovalRules;
use crate::hook::HookSpec;
use crate::prompt::{Prompt, RenderProblem, TaskFields};
use crate::review::CodeReview;

/// Longer titles are truncated in listings.
const TITLE_CHARACTERS: usize = 80;

/// Everything that determines how a run proceeds, except its environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Version of fusee that started the run.
    pub version: String,
    /// Request of the user.
    pub request: String,
    /// Work to execute.
    #[serde(default, skip_serializing_if = "RunKind::is_request")]
    pub work: RunKind,
    /// Form of the JSON output.
    #[serde(default, skip_serializing_if = "JsonOutput::is_events")]
    pub json_form: JsonOutput,
    /// Additional context for the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<String>,
    /// Images that the user sends along with the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Messages that precede the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<Message>,
    /// The run whose conversation this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<RunId>,
    /// Where the beginning of the run comes from, if it is that of another run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<RunOrigin>,
    /// How much of that conversation is carried over.
    #[serde(default, skip_serializing_if = "CarryOver::is_whole")]
    pub carry: CarryOver,
    /// Custom prompt, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptText>,
    /// Closed sections of the default prompt that the user opened.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub opened: BTreeSet<String>,
    /// Plan edited by the user; replaces the previous one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Working directory.
    pub workspace: PathBuf,
    /// Model name as given by the user.
    pub model: String,
    /// Base URL of the model server, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Wire format of the model.
    pub wire: Wire,
    /// Request traits from the model's profile.
    #[serde(default, skip_serializing_if = "ModelTraits::is_default")]
    pub traits: ModelTraits,
    /// Token prices, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Token prices of the models that stages name, recorded so that a replay charges the same.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stage_prices: BTreeMap<String, Option<Price>>,
    /// Options of each model request.
    pub options: RequestOptions,
    /// Limits on turns, tokens, cost and time.
    pub limits: Limits,
    /// When the user is asked for approval.
    pub approve: ApprovalMode,
    /// Saved approval rules.
    #[serde(default, skip_serializing_if = "ApprovalRules::is_empty")]
    pub rules: ApprovalRules,
    /// Hooks of the user and of the project, if that is trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookSpec>,
    /// Tools that MCP servers offered when the run started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<OfferedTool>,
    /// Sandbox mode chosen by the user.
    pub sandbox: SandboxMode,
    /// Additional sandbox permissions and limits.
    #[serde(default)]
    #[serde(rename = "confine")]
    pub sandbox_options: SandboxOptions,
    /// How edited files are checked, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<DiagnosticSettings>,
    /// Web tools.
    #[serde(default, skip_serializing_if = "WebSettings::is_off")]
    pub web: WebSettings,
    /// Description of the active sandbox when the run started.
    pub sandbox_state: String,
    /// Whether commands may run without approval because of it.
    #[serde(rename = "commands_settled")]
    pub commands_preapproved: bool,
    /// Restrictions of review mode, if active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewPolicy>,
    /// Code review settings, if the run is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_review: Option<CodeReview>,
    /// JSON Schema that the answer must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Flow of the run, and what the runtime adds to it.
    #[serde(default)]
    pub flow: FlowSettings,
    /// File that records the model's traffic, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
}

/// A prompt file as it was when the run started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptText {
    /// File name, for messages.
    pub file: String,
    /// Content of the file.
    pub text: String,
    /// Task fields other than request and background.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// Closed sections that the user opened.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub opened: BTreeSet<String>,
}

impl PromptText {
    /// Serialises a prompt built in Rust for this task.
    pub fn of<T: TaskFields>(prompt: &Prompt<T>, task: &T) -> Result<Self, RenderProblem> {
        let text = prompt.written(task)?;
        let mut fields = prompt.bind(task)?.fields().0;
        fields.retain(|name, _| !matches!(name.as_str(), "request" | "background"));
        Ok(Self { file: "the prompt".to_owned(), text, fields, opened: BTreeSet::new() })
    }
}

/// How much of an earlier conversation is carried over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CarryOver {
    /// The whole conversation.
    #[default]
    Whole,
    /// The compacted conversation, as requested by the user.
    Shortened,
}

impl CarryOver {
    /// Whether this is the default, which is not serialised; older journals do not have the field.
    pub(crate) fn is_whole(&self) -> bool {
        *self == Self::Whole
    }
}

/// Additional permissions and resource limits of sandboxed commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxOptions {
    /// Network access.
    pub network: Network,
    /// Hosts that commands reach by name, if that is their network access.
    #[serde(default, skip_serializing_if = "HostRules::is_empty")]
    pub hosts: HostRules,
    /// Additional readable paths.
    pub read: Vec<PathBuf>,
    /// Additional writable paths.
    pub write: Vec<PathBuf>,
    /// Resource limits.
    #[serde(rename = "allowance")]
    pub limits: ResourceLimits,
    /// Path at which the model and its commands see the workspace, where the sandbox can do that [default: its own].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_at: Option<PathBuf>,
    /// Further folders that appear at another path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedFolder>,
    /// Whether the commands of the flow (verify, before, after) come from a project that the user has not
    /// trusted. They are sandboxed even if the sandbox is off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted_flow: bool,
    /// Programs that commands may not execute, however they get to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_programs: Vec<String>,
}

/// Sandbox mode chosen by the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// Commands are sandboxed, or need approval if that is not possible.
    #[default]
    On,
    /// Commands run unsandboxed.
    Off,
}

impl RunSpec {
    /// Creates settings for a task of a custom type with its prompt. Both are stored, so that resume and
    /// replay need neither.
    pub fn prompted<T: TaskFields>(
        prompt: &Prompt<T>,
        task: &T,
        model: impl Into<String>,
        workspace: &Path,
    ) -> Result<Self, RenderProblem> {
        let fields = prompt.bind(task)?.fields().0;
        let field = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let (request, background) = (field("request").unwrap_or_default(), field("background"));
        let prompt = Some(PromptText::of(prompt, task)?);
        Ok(Self { background, prompt, ..Self::new(request, model, workspace) })
    }

    /// Creates settings for a plain request with the defaults: sandbox on, its state not determined yet.
    pub fn new(request: impl Into<String>, model: impl Into<String>, workspace: &Path) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            request: request.into(),
            work: RunKind::Request,
            json_form: JsonOutput::Events,
            background: None,
            images: Vec::new(),
            input: Vec::new(),
            continues: None,
            origin: None,
            carry: CarryOver::Whole,
            prompt: None,
            opened: BTreeSet::new(),
            plan: None,
            workspace: workspace.to_owned(),
            model: model.into(),
            base_url: None,
            wire: Wire::default(),
            traits: ModelTraits::default(),
            price: None,
            stage_prices: BTreeMap::new(),
            options: RequestOptions::default(),
            limits: Limits::default(),
            approve: ApprovalMode::default(),
            rules: ApprovalRules::default(),
            hooks: Vec::new(),
            mcp: Vec::new(),
            sandbox: SandboxMode::default(),
            sandbox_options: SandboxOptions::default(),
            diagnostics: None,
            web: WebSettings::default(),
            sandbox_state: "none".to_owned(),
            commands_preapproved: false,
            review: None,
            code_review: None,
            output_schema: None,
            flow: FlowSettings::default(),
            record: None,
        }
    }

    /// Sets the model: its name, how to reach it, and its price.
    pub fn set_connection(&mut self, resolved: &ResolvedModel) {
        self.model.clone_from(&resolved.name);
        self.base_url.clone_from(&resolved.connection.base_url);
        self.wire = resolved.connection.wire;
        self.traits = resolved.connection.traits;
        self.price = resolved.price;
        self.limits.price = resolved.price;
    }

    /// The models of the stages at the prices the run began with. Older versions recorded only the main price.
    pub(crate) fn at_recorded_prices(
        &self,
        mut stage_models: BTreeMap<String, PricedModel>,
    ) -> BTreeMap<String, PricedModel> {
        for (name, other) in &mut stage_models {
            other.price = self.stage_prices.get(name).copied().unwrap_or(self.price);
        }
        stage_models
    }

    /// Returns the part of the settings that a resume may change.
    pub(crate) fn policy(&self) -> RunPolicy {
        let Self { limits, approve, commands_preapproved, .. } = *self;
        RunPolicy { limits, approve, commands_preapproved }
    }

    pub(crate) fn set_policy(&mut self, policy: RunPolicy) {
        let RunPolicy { limits, approve, commands_preapproved } = policy;
        (self.limits, self.approve, self.commands_preapproved) = (limits, approve, commands_preapproved);
    }

    /// The path at which the model and its commands see the workspace.
    pub(crate) fn shown_workspace(&self) -> &Path {
        let moved = self.sandbox_options.workspace_at.as_deref();
        // Only a sandbox with its own mounts can show it elsewhere.
        moved.filter(|_| self.sandbox_state.starts_with("namespaces")).unwrap_or(&self.workspace)
    }

    /// Returns the request on one line, truncated.
    pub fn title(&self) -> String {
        let line = self.request.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(TITLE_CHARACTERS) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line,
        }
    }
}
