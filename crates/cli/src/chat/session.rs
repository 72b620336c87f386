//! The chat as a chain of runs: each message starts a run that continues the previous one, and the journal
//! holds them all. The UIs tell a [`Chat`] which runs to start and which commands to answer; they render
//! events.

mod context_view;
mod open;
mod overview;
mod plan_view;
mod rewind;
mod slash_replies;
mod start_run;
#[cfg(feature = "serve")]
mod web_page;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use fusee::engine::agent::Plan as PlanOfWork;
use fusee::engine::approval::{ApprovalMode, Approver};
use fusee::engine::journal::{RunId, RunStatus};
use fusee::engine::lang::Callable;
use fusee::engine::run::{self, CarryOver, PromptText, RunOutcome, RunSpec};

use super::complete::TaskCandidate;
use super::session_picker::PickerEntry;
use crate::command::run_setup::{RunSetup, StartedRun};
use crate::config::{Config, FlagValue, Value};
use crate::model_selection;
use crate::process::error::CliError;
use crate::project::find_run;
use crate::project::mcp_servers;
use crate::project::saved_rules::SavedRules;
use crate::project::template_source::{self, ReloadingTemplates};
use crate::project::workflow_registry;
use crate::ui::terminal::Glyphs;

pub(crate) use open::ChatOptions;

/// Maximum number of the user's own commands that a message takes along.
const MAX_COMMANDS: usize = 4;

/// A chat and everything its runs need.
pub(crate) struct Chat<'p> {
    /// Settings made for this chat; they override all configuration files.
    flags: Vec<FlagValue>,
    setup: RunSetup<'p>,
    approve: ApprovalMode,
    approver: Arc<dyn Approver>,
    /// The run that the next message continues.
    continues: Option<RunId>,
    /// Whether the user wants to continue an earlier conversation without having said which.
    pick: bool,
    /// How much of that run's conversation the next message takes over.
    carry: CarryOver,
    prompt: Option<PromptText>,
    /// The prompt that every new chat starts with.
    given_prompt: Option<PromptText>,
    /// Sections of the default prompt that the user opened for the next message.
    opened: BTreeSet<String>,
    /// The plan as edited by the user for the next message.
    plan: Option<PlanOfWork>,
    /// The last edit of the plan, if it could not be parsed.
    plan_draft: Option<String>,
    /// Whether messages only look and plan.
    plan_mode: bool,
    /// Commands that the user ran since the last message, with their output.
    commands: Vec<String>,
    templates: ReloadingTemplates,
    #[cfg(feature = "serve")]
    web: web_page::WebPage,
}

/// A started run of a chat.
pub(crate) struct ChatRun {
    pub(crate) started: StartedRun,
    /// Problems with the message, such as files that could not be attached.
    pub(crate) problems: Vec<String>,
}

/// How the chat goes on after `/resume`.
pub(crate) enum ResumeOutcome {
    /// An interrupted run was resumed.
    Running(Box<ChatRun>),
    /// The next message continues this finished run.
    Continues(RunId),
}

impl Chat<'_> {
    /// Display name of the model.
    pub(crate) fn model(&self) -> &str {
        &self.setup.resolved.name
    }

    /// The project directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.setup.project.directory
    }

    /// Approval mode and sandbox state, for display.
    pub(crate) fn approval_and_sandbox(&self) -> String {
        let approve = match self.approve {
            ApprovalMode::Auto => "auto",
            ApprovalMode::Ask => "ask",
            ApprovalMode::Never => "never",
        };
        let plan = if self.plan_mode { "plan mode · " } else { "" };
        format!("{plan}approve {approve} · sandbox {}", self.setup.sandbox.state)
    }

    /// Describes the sandbox that an approved command runs in.
    pub(crate) fn sandbox_text(&self) -> &'static str {
        match self.setup.sandbox.state {
            "namespaces" => "sandboxed: can change only the project, no network",
            "namespaces, hosts by name" => {
                "sandboxed: can change only the project, can connect only to allowed hosts"
            }
            "namespaces, network allowed" => "sandboxed: can change only the project, network allowed",
            "landlock" => "sandboxed by Landlock: can write files only in the project, no network",
            "landlock, network allowed" => {
                "sandboxed by Landlock: can write files only in the project, network allowed"
            }
            _ => "not sandboxed: runs with your permissions",
        }
    }

    /// Templates and workflows that `/task` can run.
    pub(crate) fn runnable_tasks(&mut self) -> Vec<TaskCandidate> {
        let environment = &self.setup.process.environment;
        let (loaded, _) = self.templates.gather(&self.setup.project, environment);
        let workflows = workflow_registry::workflows(&self.setup.project, environment);
        let known = template_source::callables(&loaded.registry).into_iter();
        let known = known.chain(workflows.iter().map(workflow_registry::NamedWorkflow::callable));
        let offer = |task: Callable| {
            let inputs = task.params.iter().map(|param| param.name.clone()).collect();
            TaskCandidate { name: task.name, inputs }
        };
        let mut offers: Vec<TaskCandidate> = known.map(offer).collect();
        offers.sort_by(|a, b| a.name.cmp(&b.name));
        offers
    }

    /// Whether the next message continues an earlier run.
    pub(crate) fn is_continued(&self) -> bool {
        self.continues.is_some()
    }

    /// The conversations to choose from, if the user has to: then the next message continues none of them yet.
    pub(crate) fn take_choice(&mut self) -> Option<Vec<PickerEntry>> {
        let entries = std::mem::take(&mut self.pick).then(|| self.sessions().ok()).flatten()?;
        if entries.len() < 2 {
            return None;
        }
        self.continues = None;
        Some(entries)
    }

    /// Whether messages only look and plan.
    pub(crate) fn is_planning(&self) -> bool {
        self.plan_mode
    }

    /// Switches plan mode.
    pub(crate) fn set_planning(&mut self, on: bool) {
        self.plan_mode = on;
    }

    /// Adds the output of a command that the user ran to the next message.
    pub(crate) fn note_command(&mut self, text: String) {
        self.commands.push(text);
        let more = self.commands.len().saturating_sub(MAX_COMMANDS);
        self.commands.drain(..more);
    }

    /// Whether output is coloured, and the glyph set of the terminal.
    pub(crate) fn appearance(&self) -> (bool, &'static Glyphs) {
        (self.setup.ui_options.colour, self.setup.ui_options.glyphs())
    }

    /// Sets the approver for the following runs.
    pub(crate) fn ask(&mut self, approver: Arc<dyn Approver>) {
        self.approver = approver;
    }

    /// The store of permanent approvals.
    pub(crate) fn approvals(&self) -> SavedRules {
        self.setup.saved_rules()
    }

    /// Resumes a run or continues its conversation: by default the newest run in this directory.
    pub(crate) fn resume(&mut self, name: Option<&str>) -> Result<ResumeOutcome, CliError> {
        self.setup.project.check_owner()?;
        let row = match name {
            Some(name) => find_run::named(&self.setup.journal, name)?,
            None => open::newest(&self.setup.journal, &self.setup.project.directory)?
                .ok_or_else(|| CliError::usage("no run in this directory to resume"))?,
        };
        let settings = run::settings_of(&self.setup.journal, &row.id)?;
        if row.status != RunStatus::Open {
            self.prompt.clone_from(&settings.prompt);
            self.continues = Some(row.id.clone());
            return Ok(ResumeOutcome::Continues(row.id));
        }
        let (config, environment) = (&self.setup.config, &self.setup.process.environment);
        // A run keeps its model; the chat's open model is reused if it is the same one.
        let model = if settings.model == self.setup.resolved.name {
            Arc::clone(&self.setup.model)
        } else {
            model_selection::open(&model_selection::for_resume(&settings, config, environment)?, None)?
        };
        let (spec, prompt) = (RunSpec { approve: self.approve, ..settings.clone() }, settings.prompt);
        let servers = mcp_servers::for_resume(&settings.mcp, config, &settings.workspace, self.setup.process);
        let started = self.setup.resume(&row.id, spec, model, &servers, Some(&self.approver))?;
        #[cfg(feature = "serve")]
        self.note_run(&started);
        self.prompt = prompt;
        Ok(ResumeOutcome::Running(Box::new(ChatRun { started, problems: Vec::new() })))
    }

    /// Changes a setting for the rest of the chat, with the precedence of a flag.
    fn set(&mut self, name: &'static str, value: &str) -> Result<(), CliError> {
        let mut flags = self.flags.clone();
        flags.retain(|(other, _)| *other != name);
        flags.push((name, Value::Text(value.to_owned())));
        let file = self.setup.project.config_file();
        let config = Config::gather(Some(&file), &self.setup.process.environment, flags.clone())?;
        config.flow()?;
        (self.setup.config, self.flags) = (config, flags);
        Ok(())
    }

    /// Makes the next message continue a finished run. A run whose journal failed stays open and is not
    /// continued.
    pub(crate) fn ended(&mut self, run: &RunId, outcome: &RunOutcome) {
        if matches!(outcome, RunOutcome::Ended(_)) {
            self.continues = Some(run.clone());
        }
    }
}
