//! A conversation as a chain of runs: each message begins a run that continues the one before, and the journal
//! holds them all. Faces tell a [`Session`] what to begin and what to answer; what they show comes from events.

mod answers;
mod beginning;
mod opening;
mod outlook;
mod planning;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use fusee_engine::agent::Plan as PlanOfWork;
use fusee_engine::approval::{Approve, Approver, Question};
use fusee_engine::journal::{Journal, RunId, RunStatus};
use fusee_engine::lang::Callable;
use fusee_engine::model::Model;
use fusee_engine::run::{self, Carry, Confine, PromptText, Resources, RunOutcome, Running, Settings};

use super::complete::Offer;
use crate::approvals::Approvals;
use crate::choice::{self, Choice, StandIn};
use crate::command::Process;
use crate::config::{Config, FlagValue, Value};
use crate::face::terminal::Glyphs;
use crate::face::{Plan, Show};
use crate::failure::Failure;
use crate::mcp::{self, Servers};
use crate::project::Project;
use crate::registered;
use crate::selection;
use crate::templates::{self, Standing};
use crate::work::{self, Confinement};

pub(crate) use opening::Beginning;

/// A conversation and what its runs are given.
pub(crate) struct Session<'p> {
    process: &'p Process,
    project: Project,
    config: Config,
    /// What was said for this conversation, over all files.
    flags: Vec<FlagValue>,
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
    /// How much of it that message takes over.
    carry: Carry,
    prompt: Option<PromptText>,
    /// The prompt that every new conversation begins with.
    given_prompt: Option<PromptText>,
    servers: Servers,
    /// Sections of the usual prompt that the person opened for the next message.
    opened: BTreeSet<String>,
    /// The plan as the person changed it for the next message.
    plan: Option<PlanOfWork>,
    /// What was written for a plan and could not be understood.
    plan_draft: Option<String>,
    templates: Standing,
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
        format!("approve {approve} · sandbox {}", self.confinement.state)
    }

    /// What holds a command that is allowed, for people.
    pub(crate) fn confines(&self) -> &'static str {
        match self.confinement.state {
            "namespaces" => "in the sandbox: it can change the project only, and has no network",
            "namespaces, network allowed" => {
                "in the sandbox: it can change the project only, the network is open"
            }
            _ => "no sandbox: it can do whatever you can",
        }
    }

    /// Templates and workflows that `/task` could run now.
    pub(crate) fn offers(&mut self) -> Vec<Offer> {
        let environment = &self.process.environment;
        let (loaded, _) = self.templates.gather(&self.project, environment);
        let workflows = registered::workflows(&self.project, environment);
        let known = templates::callables(&loaded.registry).into_iter();
        let known = known.chain(workflows.iter().map(registered::Registered::callable));
        let offer = |task: Callable| {
            let inputs = task.params.iter().map(|param| param.name.clone()).collect();
            Offer { name: task.name, inputs }
        };
        let mut offers: Vec<Offer> = known.map(offer).collect();
        offers.sort_by(|a, b| a.name.cmp(&b.name));
        offers
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
        self.approvals().add(question.lasting())
    }

    /// Where answers are kept.
    pub(crate) fn approvals(&self) -> Approvals {
        Approvals::of(&self.project, &self.process.environment)
    }

    /// Goes on with a run: the newest here if none is named.
    pub(crate) fn resume(&mut self, name: Option<&str>) -> Result<Returned, Failure> {
        self.project.check_owner()?;
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
        let environment = &self.process.environment;
        let (plan, prompt) = (Plan::of(&settings), settings.prompt.clone());
        let servers = mcp::again(&settings.mcp, &self.config, &settings.workspace, self.process);
        let resources = servers.given_to(self.resources(StandIn::called(&settings.model.clone(), model)));
        let others = choice::of_stages(&settings, &self.config, environment)?;
        let templates = templates::needed(&settings, &self.project, environment);
        let running = run::resume(&row.id, settings, Resources { others, templates, ..resources })?;
        self.prompt = prompt;
        Ok(Returned::Running(Box::new(Begun { running, plan, problems: Vec::new() })))
    }

    /// Says something for the rest of the conversation, as a flag would have.
    fn set(&mut self, name: &'static str, value: &str) -> Result<(), Failure> {
        let mut flags = self.flags.clone();
        flags.retain(|(other, _)| *other != name);
        flags.push((name, Value::Text(value.to_owned())));
        let file = self.project.config_file();
        let config = Config::gather(Some(&file), &self.process.environment, flags.clone())?;
        config.flow()?;
        (self.config, self.flags) = (config, flags);
        Ok(())
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
