//! Starts the runs of a chat: for a message, a task or a review. The commands with the same names outside of
//! the chat define what a task and a review are.

use std::sync::Arc;

use fusee_engine::agent::Restrictions;
use fusee_engine::flow::FlowSettings;
use fusee_engine::model::Model;
use fusee_engine::run::{self, Carry, Resources, Settings, Templates};
use fusee_engine::tools::Workspace;

use super::{Begun, Session};
use crate::choice::{self, Choice};
use crate::clock;
use crate::command::review;
use crate::command::task::{self, Ready};
use crate::config::Origin;
use crate::face::Plan;
use crate::failure::Failure;
use crate::templates;
use crate::tui::commands::Errand;
use crate::tui::mention::{self, Mentioned};

impl Session<'_> {
    /// Starts a run.
    pub(crate) async fn begin(&mut self, errand: Errand) -> Result<Begun, Failure> {
        match errand {
            Errand::Words(words) => self.begin_words(words).await,
            Errand::Task(line) => self.begin_task(&line).await,
            Errand::Review(line) => self.begin_review(&line).await,
        }
    }

    async fn begin_words(&mut self, message: String) -> Result<Begun, Failure> {
        let workspace = Workspace::open(&self.project.directory);
        let Mentioned { background, problems } = match &workspace {
            Ok(workspace) => mention::gather(&message, workspace),
            Err(_) => Mentioned::default(),
        };
        let settings = Settings { background, plan: self.plan.clone(), ..self.next_settings(message)? };
        let templates = templates::needed(&settings, &self.project, &self.process.environment);
        let begun = self.start(settings, Arc::clone(&self.model), templates, problems).await?;
        self.opened.clear();
        (self.plan, self.plan_draft) = (None, None);
        Ok(begun)
    }

    /// The settings for a message to the model.
    pub(super) fn next_settings(&self, message: String) -> Result<Settings, Failure> {
        let (prompt, opened) = (self.prompt.clone(), self.opened.clone());
        Ok(Settings { prompt, opened, ..self.settings(message, &self.choice)? })
    }

    async fn begin_task(&mut self, line: &str) -> Result<Begun, Failure> {
        let Ready { work, model, loaded, notes } =
            task::ready(line, &mut self.templates, &self.project, self.process)?;
        let own = model.filter(|_| !self.model_was_said());
        let own =
            own.map(|model| Choice::named(&model, &self.config, &self.process.environment)).transpose()?;
        let model = match &own {
            Some(choice) => choice.open(None)?,
            None => Arc::clone(&self.model),
        };
        let request = if line.starts_with('(') { line.to_owned() } else { format!("/task {line}") };
        let choice = own.as_ref().unwrap_or(&self.choice);
        let settings = Settings { work, flow: FlowSettings::default(), ..self.settings(request, choice)? };
        let templates = templates::for_run(loaded, &self.project);
        self.start(settings, model, templates, notes).await
    }

    async fn begin_review(&mut self, line: &str) -> Result<Begun, Failure> {
        let (review, request) = review::of_line(line, &self.project, self.process)?;
        let settings = Settings {
            // A reviewer changes nothing, so there is nothing to approve.
            review: Some(Restrictions { require_approval: false, ..Restrictions::default() }),
            code_review: Some(review),
            ..self.settings(request, &self.choice)?
        };
        self.start(settings, Arc::clone(&self.model), Templates::default(), Vec::new()).await
    }

    /// Whether the user chose the model for this chat, which overrides the model of a template.
    fn model_was_said(&self) -> bool {
        let said = self.config.value("model").map(|(_, origin)| origin);
        matches!(said, Some(Origin::Flag(_) | Origin::Variable(_)))
    }

    fn settings(&self, request: String, choice: &Choice) -> Result<Settings, Failure> {
        Ok(Settings {
            continues: self.continues.clone(),
            carry: self.carry,
            base_url: choice.settings.base_url.clone(),
            wire: choice.settings.wire,
            traits: choice.settings.traits,
            price: choice.price,
            options: choice.options(&self.config),
            limits: choice.limits(&self.config),
            approve: self.approve,
            rules: self.confinement.rules(&self.config),
            mcp: self.servers.offered.clone(),
            sandbox: self.config.sandbox(),
            confine: self.confine.clone(),
            sandbox_state: self.confinement.state.to_owned(),
            commands_settled: self.confinement.settled,
            flow: self.config.flow()?,
            ..Settings::new(request, choice.name.clone(), &self.project.directory)
        })
    }

    async fn start(
        &mut self,
        settings: Settings,
        model: Arc<dyn Model>,
        templates: Templates,
        problems: Vec<String>,
    ) -> Result<Begun, Failure> {
        let plan = Plan::of(&settings);
        let others = choice::of_stages(&settings, &self.config, &self.process.environment)?;
        let given = self.servers.clone().given_to(self.resources(model));
        let id = clock::new_run_id()?;
        let running = run::start(&id, settings, Resources { others, templates, ..given }).await?;
        self.carry = Carry::Whole;
        Ok(Begun { running, plan, problems })
    }
}
