//! A conversation as a chain of runs: each message begins a run that continues the one before, and the journal
//! holds them all. Faces tell a [`Session`] what to begin and what to answer; what they show comes from events.

mod answers;
mod opening;

use std::path::Path;
use std::sync::Arc;

use fusee_engine::approval::{Approve, Approver, Question};
use fusee_engine::journal::{Journal, RunId, RunStatus};
use fusee_engine::model::Model;
use fusee_engine::run::{self, Confine, PromptText, Resources, RunOutcome, Running, Settings};
use fusee_engine::tools::Workspace;

use super::mention::{self, Mentioned};
use crate::approvals::Approvals;
use crate::choice::{Choice, StandIn};
use crate::clock;
use crate::command::Process;
use crate::config::Config;
use crate::face::terminal::Glyphs;
use crate::face::{Plan, Show};
use crate::failure::Failure;
use crate::project::Project;
use crate::selection;
use crate::work::{self, Confinement};

pub(crate) use opening::Beginning;

/// A conversation and what its runs are given.
pub(crate) struct Session<'p> {
    process: &'p Process,
    project: Project,
    config: Config,
    show: Show,
    journal: Journal,
    confine: Confine,
    confinement: Confinement,
    choice: Choice,
    /// Opened once: a script goes on where the message before left it, and connections stay warm.
    model: Arc<dyn Model>,
    approve: Approve,
    approver: Arc<dyn Approver>,
    /// The run that the next message continues.
    continues: Option<RunId>,
    prompt: Option<PromptText>,
}

/// A run that was begun, and what a face should know of it.
pub(crate) struct Begun {
    pub(crate) running: Running,
    pub(crate) plan: Plan,
    /// What of the message could not come along.
    pub(crate) problems: Vec<String>,
}

/// What `/resume` leads to.
pub(crate) enum Returned {
    /// A run that was cut off goes on.
    Running(Box<Begun>),
    /// The next message continues a run that has ended.
    Continues(RunId),
}

impl Session<'_> {
    /// The model's name, for people.
    pub(crate) fn model(&self) -> &str {
        &self.choice.name
    }

    /// Where it works.
    pub(crate) fn directory(&self) -> &Path {
        &self.project.directory
    }

    /// What commands may do, for people.
    pub(crate) fn terms(&self) -> String {
        let approve = match self.approve {
            Approve::Auto => "auto",
            Approve::Ask => "ask",
            Approve::Never => "never",
        };
        format!("approve {approve} · sandbox {} · /help", self.confinement.state)
    }

    /// Whether the next message goes on with an earlier one.
    pub(crate) fn is_continued(&self) -> bool {
        self.continues.is_some()
    }

    /// Whether a terminal gets colours, and which signs it knows.
    pub(crate) fn looks(&self) -> (bool, &'static Glyphs) {
        (self.show.colour, self.show.glyphs())
    }

    /// Asks this one from now on.
    pub(crate) fn ask(&mut self, approver: Arc<dyn Approver>) {
        self.approver = approver;
    }

    /// Keeps an answer for this project.
    pub(crate) fn keep(&self, question: &Question) -> std::io::Result<()> {
        Approvals::of(&self.project, &self.process.environment).add(question.lasting())
    }

    /// Begins a run with a message.
    pub(crate) async fn begin(&self, message: String) -> Result<Begun, Failure> {
        let workspace = Workspace::open(&self.project.directory);
        let Mentioned { background, problems } = match &workspace {
            Ok(workspace) => mention::gather(&message, workspace),
            Err(_) => Mentioned::default(),
        };
        let settings = Settings {
            prompt: self.prompt.clone(),
            background,
            continues: self.continues.clone(),
            base_url: self.choice.settings.base_url.clone(),
            wire: self.choice.settings.wire,
            options: self.config.options(),
            limits: self.choice.limits(&self.config),
            approve: self.approve,
            sandbox: self.config.sandbox(),
            sandbox_state: self.confinement.state.to_owned(),
            commands_settled: self.confinement.settled,
            rules: self.confinement.rules(&self.config),
            confine: self.confine.clone(),
            ..Settings::new(message, self.choice.name.clone(), &self.project.directory)
        };
        let plan = Plan::of(&settings);
        let id = clock::new_run_id()?;
        let running = run::start(&id, settings, self.resources(Arc::clone(&self.model))).await?;
        Ok(Begun { running, plan, problems })
    }

    /// Goes on with a run: the newest here if none is named.
    pub(crate) fn resume(&mut self, name: Option<&str>) -> Result<Returned, Failure> {
        let row = match name {
            Some(name) => selection::named(&self.journal, name)?,
            None => opening::newest(&self.journal, &self.project.directory)?
                .ok_or_else(|| Failure::usage("nothing was run here yet: there is nothing to go on with"))?,
        };
        let settings = run::settings_of(&self.journal, &row.id)?;
        if row.status != RunStatus::Open {
            self.prompt.clone_from(&settings.prompt);
            self.continues = Some(row.id.clone());
            return Ok(Returned::Continues(row.id));
        }
        // It keeps the model it began with; the conversation's own is taken where they are the same.
        let model = if settings.model == self.choice.name {
            Arc::clone(&self.model)
        } else {
            Choice::again(&settings, &self.config, &self.process.environment)?.open(None)?
        };
        let settings = Settings {
            approve: self.approve,
            sandbox_state: self.confinement.state.to_owned(),
            commands_settled: self.confinement.settled,
            ..settings
        };
        let (plan, prompt) = (Plan::of(&settings), settings.prompt.clone());
        let resources = self.resources(StandIn::called(&settings.model.clone(), model));
        let running = run::resume(&row.id, settings, resources)?;
        self.prompt = prompt;
        Ok(Returned::Running(Box::new(Begun { running, plan, problems: Vec::new() })))
    }

    /// A run came to its end: the next message continues it. One whose journal failed stays open and is left alone.
    pub(crate) fn ended(&mut self, run: &RunId, outcome: &RunOutcome) {
        if matches!(outcome, RunOutcome::Ended(_)) {
            self.continues = Some(run.clone());
        }
    }

    fn resources(&self, model: Arc<dyn Model>) -> Resources {
        let journal = self.journal.clone();
        let resources = work::resources(journal, model, &self.confinement, &self.show, self.process);
        Resources { approver: Arc::clone(&self.approver), ..resources }
    }
}
