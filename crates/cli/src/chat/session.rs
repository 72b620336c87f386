//! The chat as a chain of runs: each message starts a run that continues the previous one, and the journal
//! holds them all. The UIs tell a [`Chat`] which runs to start and which commands to answer; they render
//! events.

mod context_view;
mod open;
mod plan_view;
mod slash_replies;
mod start_run;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use fusee_engine::agent::Plan as PlanOfWork;
use fusee_engine::approval::{ApprovalMode, ApprovalQuestion, Approver};
use fusee_engine::journal::{Journal, RunId, RunStatus};
use fusee_engine::lang::Callable;
use fusee_engine::model::Model;
use fusee_engine::run::{
    self, CarryOver, PromptText, RunDeps, RunHandle, RunOutcome, RunSpec, SandboxOptions,
};

use super::complete::TaskCandidate;
use crate::cli::error::CliError;
use crate::command::Process;
use crate::command::run_session::{self, ActiveSandbox};
use crate::config::{Config, FlagValue, Value};
use crate::model_selection::{self, ModelSelection, RenamedModel};
use crate::project::Project;
use crate::project::find_run;
use crate::project::mcp_servers::{self, McpServers};
use crate::project::saved_rules::SavedRules;
use crate::project::template_loading::{self, ReloadingTemplates};
use crate::project::workflow_registry;
use crate::ui::terminal::Glyphs;
use crate::ui::{RunHeader, UiOptions};

pub(crate) use open::ChatOptions;

/// A chat and everything its runs need.
pub(crate) struct Chat<'p> {
    process: &'p Process,
    project: Project,
    config: Config,
    /// Settings made for this chat; they override all configuration files.
    flags: Vec<FlagValue>,
    show: UiOptions,
    journal: Journal,
    confine: SandboxOptions,
    confinement: ActiveSandbox,
    choice: ModelSelection,
    /// Opened once, so a script continues after the previous message, and connections stay open.
    model: Arc<dyn Model>,
    approve: ApprovalMode,
    approver: Arc<dyn Approver>,
    /// The run that the next message continues.
    continues: Option<RunId>,
    /// How much of that run's conversation the next message takes over.
    carry: CarryOver,
    prompt: Option<PromptText>,
    /// The prompt that every new chat starts with.
    given_prompt: Option<PromptText>,
    servers: McpServers,
    /// Sections of the default prompt that the user opened for the next message.
    opened: BTreeSet<String>,
    /// The plan as edited by the user for the next message.
    plan: Option<PlanOfWork>,
    /// The last edit of the plan, if it could not be parsed.
    plan_draft: Option<String>,
    templates: ReloadingTemplates,
}

/// A started run, and the information its UI needs.
pub(crate) struct StartedRun {
    pub(crate) running: RunHandle,
    pub(crate) plan: RunHeader,
    /// Problems with the message, such as files that could not be attached.
    pub(crate) problems: Vec<String>,
}

/// Outcome of `/resume`.
pub(crate) enum ResumeOutcome {
    /// An interrupted run was resumed.
    Running(Box<StartedRun>),
    /// The next message continues this finished run.
    Continues(RunId),
}

impl Chat<'_> {
    /// Display name of the model.
    pub(crate) fn model(&self) -> &str {
        &self.choice.name
    }

    /// The project directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.project.directory
    }

    /// Approval mode and sandbox state, for display.
    pub(crate) fn terms(&self) -> String {
        let approve = match self.approve {
            ApprovalMode::Auto => "auto",
            ApprovalMode::Ask => "ask",
            ApprovalMode::Never => "never",
        };
        format!("approve {approve} · sandbox {}", self.confinement.state)
    }

    /// Describes the sandbox that an approved command runs in.
    pub(crate) fn sandbox_text(&self) -> &'static str {
        self.confinement.description
    }

    /// Templates and workflows that `/task` can run.
    pub(crate) fn offers(&mut self) -> Vec<TaskCandidate> {
        let environment = &self.process.environment;
        let (loaded, _) = self.templates.gather(&self.project, environment);
        let workflows = workflow_registry::workflows(&self.project, environment);
        let known = template_loading::callables(&loaded.registry).into_iter();
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

    /// Whether output is coloured, and the glyph set of the terminal.
    pub(crate) fn looks(&self) -> (bool, &'static Glyphs) {
        (self.show.colour, self.show.glyphs())
    }

    /// Sets the approver for the following runs.
    pub(crate) fn ask(&mut self, approver: Arc<dyn Approver>) {
        self.approver = approver;
    }

    /// Stores an approval permanently for this project.
    pub(crate) fn keep(&self, question: &ApprovalQuestion) -> std::io::Result<()> {
        self.approvals().add(question.lasting())
    }

    /// The store of permanent approvals.
    pub(crate) fn approvals(&self) -> SavedRules {
        SavedRules::of(&self.project, &self.process.environment)
    }

    /// Resumes a run or continues its conversation: by default the newest run in this directory.
    pub(crate) fn resume(&mut self, name: Option<&str>) -> Result<ResumeOutcome, CliError> {
        self.project.check_owner()?;
        let row = match name {
            Some(name) => find_run::named(&self.journal, name)?,
            None => open::newest(&self.journal, &self.project.directory)?
                .ok_or_else(|| CliError::usage("no run in this directory to resume"))?,
        };
        let settings = run::settings_of(&self.journal, &row.id)?;
        if row.status != RunStatus::Open {
            self.prompt.clone_from(&settings.prompt);
            self.continues = Some(row.id.clone());
            return Ok(ResumeOutcome::Continues(row.id));
        }
        // A run keeps its model; the chat's open model is reused if it is the same one.
        let model = if settings.model == self.choice.name {
            Arc::clone(&self.model)
        } else {
            ModelSelection::again(&settings, &self.config, &self.process.environment)?.open(None)?
        };
        let settings = RunSpec {
            approve: self.approve,
            sandbox_state: self.confinement.state.to_owned(),
            commands_settled: self.confinement.settled,
            ..settings
        };
        let environment = &self.process.environment;
        let (plan, prompt) = (RunHeader::of(&settings), settings.prompt.clone());
        let servers = mcp_servers::again(&settings.mcp, &self.config, &settings.workspace, self.process);
        let resources =
            servers.attach_to(self.resources(RenamedModel::called(&settings.model.clone(), model)));
        let others = model_selection::stage_models(&settings, &self.config, environment)?;
        let templates = template_loading::needed(&settings, &self.project, environment);
        let running = run::resume(&row.id, settings, RunDeps { others, templates, ..resources })?;
        self.prompt = prompt;
        Ok(ResumeOutcome::Running(Box::new(StartedRun { running, plan, problems: Vec::new() })))
    }

    /// Changes a setting for the rest of the chat, with the precedence of a flag.
    fn set(&mut self, name: &'static str, value: &str) -> Result<(), CliError> {
        let mut flags = self.flags.clone();
        flags.retain(|(other, _)| *other != name);
        flags.push((name, Value::Text(value.to_owned())));
        let file = self.project.config_file();
        let config = Config::gather(Some(&file), &self.process.environment, flags.clone())?;
        config.flow()?;
        (self.config, self.flags) = (config, flags);
        Ok(())
    }

    /// Makes the next message continue a finished run. A run whose journal failed stays open and is not
    /// continued.
    pub(crate) fn ended(&mut self, run: &RunId, outcome: &RunOutcome) {
        if matches!(outcome, RunOutcome::Ended(_)) {
            self.continues = Some(run.clone());
        }
    }

    fn resources(&self, model: Arc<dyn Model>) -> RunDeps {
        let journal = self.journal.clone();
        let resources = run_session::resources(journal, model, &self.confinement, &self.show, self.process);
        RunDeps { approver: Arc::clone(&self.approver), ..resources }
    }
}
