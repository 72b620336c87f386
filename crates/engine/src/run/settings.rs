//! What a run was started with: its step 0. Resuming needs no flags, and a run finishes on the settings it
//! began with. Keys are never part of it, only what names them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fusee_journal::RunId;
use fusee_model::{Price, RequestOptions, Traits, Wire};
use fusee_tools::mcp::Offered;
use fusee_tools::sandbox::{Allowance, Network};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::work::{JsonForm, Work};
use crate::agent::{Limits, Plan, Restrictions, Terms};
use crate::approval::Approve;
use crate::approval::rules::Rules;
use crate::flow::FlowSettings;
use crate::prompt::{Prompt, RenderProblem, TaskFields};
use crate::review::CodeReview;

/// Longer titles are cut in listings.
const TITLE_CHARACTERS: usize = 80;

/// Everything that decides how a run goes, but for the world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The version of the product that began it.
    pub version: String,
    /// What is asked.
    pub request: String,
    /// What is done about it.
    #[serde(default, skip_serializing_if = "Work::is_request")]
    pub work: Work,
    /// What is printed of it as JSON.
    #[serde(default, skip_serializing_if = "JsonForm::is_events")]
    pub json_form: JsonForm,
    /// What is good to know for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<String>,
    /// The run whose conversation this one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<RunId>,
    /// How much of that conversation it takes over.
    #[serde(default, skip_serializing_if = "Carry::is_whole")]
    pub carry: Carry,
    /// The prompt that drives it, if that is not the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptText>,
    /// Closed sections of the usual prompt that a person has opened.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub opened: BTreeSet<String>,
    /// The plan as a person left it, in the place of the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Where it works.
    pub workspace: PathBuf,
    /// The model, as the user named it.
    pub model: String,
    /// Where the model is, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The format that the model speaks.
    pub wire: Wire,
    /// What the model's profile says about how it is talked to.
    #[serde(default, skip_serializing_if = "Traits::are_usual")]
    pub traits: Traits,
    /// What its tokens cost, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The knobs of each request.
    pub options: RequestOptions,
    /// How much it may use up.
    pub limits: Limits,
    /// When a person is asked.
    pub approve: Approve,
    /// What the user decided about calls before they come.
    #[serde(default, skip_serializing_if = "Rules::is_empty")]
    pub rules: Rules,
    /// Tools that MCP servers offered when the run began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<Offered>,
    /// What the user said of the sandbox.
    pub sandbox: SandboxMode,
    /// What confined commands have beyond the usual.
    #[serde(default)]
    pub confine: Confine,
    /// What confines commands, in words, when the run began.
    pub sandbox_state: String,
    /// Whether that settles that commands may run.
    pub commands_settled: bool,
    /// Set in review mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Restrictions>,
    /// Set for the code reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_review: Option<CodeReview>,
    /// The JSON Schema that the answer must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// How the work is done, and what the runtime adds.
    #[serde(default)]
    pub flow: FlowSettings,
    /// A file that records the model's traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
}

/// A prompt file as it was when the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptText {
    /// The file, for people.
    pub file: String,
    /// What it held.
    pub text: String,
    /// Fields of the task beside its request and its background.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// Closed sections that a person has opened.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub opened: BTreeSet<String>,
}

impl PromptText {
    /// A prompt made in Rust, for this task.
    pub fn of<T: TaskFields>(prompt: &Prompt<T>, task: &T) -> Result<Self, RenderProblem> {
        let text = prompt.written(task)?;
        let mut fields = prompt.bind(task)?.fields().0;
        fields.retain(|name, _| !matches!(name.as_str(), "request" | "background"));
        Ok(Self { file: "the prompt".to_owned(), text, fields, opened: BTreeSet::new() })
    }
}

/// How much of an earlier conversation a run takes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carry {
    /// All of it.
    #[default]
    Whole,
    /// As little as a compaction leaves, because a person wants it so.
    Shortened,
}

impl Carry {
    /// Whether it is all of it, which older journals say nothing of.
    pub(crate) fn is_whole(&self) -> bool {
        *self == Self::Whole
    }
}

/// What confined commands have beyond the usual, and how much of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confine {
    /// Whom they can talk to.
    pub network: Network,
    /// More that they may read.
    pub read: Vec<PathBuf>,
    /// More that they may change.
    pub write: Vec<PathBuf>,
    /// How much they may use.
    pub allowance: Allowance,
}

/// What the user said of the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// Commands are confined, or asked about where that is not possible.
    #[default]
    On,
    /// Commands run free.
    Off,
}

impl Settings {
    /// A task of one's own type with the prompt for it. The run keeps both, so resuming and replaying need neither.
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

    /// A plain request for a model, by the usual rules: the sandbox on, and nothing known of it yet.
    pub fn new(request: impl Into<String>, model: impl Into<String>, workspace: &Path) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            request: request.into(),
            work: Work::Request,
            json_form: JsonForm::Events,
            background: None,
            continues: None,
            carry: Carry::Whole,
            prompt: None,
            opened: BTreeSet::new(),
            plan: None,
            workspace: workspace.to_owned(),
            model: model.into(),
            base_url: None,
            wire: Wire::default(),
            traits: Traits::default(),
            price: None,
            options: RequestOptions::default(),
            limits: Limits::default(),
            approve: Approve::default(),
            rules: Rules::default(),
            mcp: Vec::new(),
            sandbox: SandboxMode::default(),
            confine: Confine::default(),
            sandbox_state: "none".to_owned(),
            commands_settled: false,
            review: None,
            code_review: None,
            output_schema: None,
            flow: FlowSettings::default(),
            record: None,
        }
    }

    /// What of it a resume may change.
    pub(crate) fn terms(&self) -> Terms {
        let Self { limits, approve, commands_settled, .. } = *self;
        Terms { limits, approve, commands_settled }
    }

    pub(crate) fn set_terms(&mut self, terms: Terms) {
        let Terms { limits, approve, commands_settled } = terms;
        (self.limits, self.approve, self.commands_settled) = (limits, approve, commands_settled);
    }

    /// The request on one line.
    pub(crate) fn title(&self) -> String {
        let line = self.request.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(TITLE_CHARACTERS) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line,
        }
    }
}
