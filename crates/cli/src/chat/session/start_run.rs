//! Starts the runs of a chat: for a message, a task or a review. The commands with the same names outside of
//! the chat define what a task and a review are.

use std::sync::Arc;

use fusee_engine::agent::ReviewPolicy;
use fusee_engine::agent::flow::FlowSettings;
use fusee_engine::model::Model;
use fusee_engine::run::{self, CarryOver, RunDeps, RunSpec, TemplateSource};
use fusee_engine::tools::Workspace;

use super::{Chat, StartedRun};
use crate::chat::commands::RunRequest;
use crate::chat::file_mentions::{self, AttachedFiles};
use crate::cli::clock;
use crate::cli::error::CliError;
use crate::command::review;
use crate::command::task::{self, ReadyTask};
use crate::config::ValueOrigin;
use crate::model_selection::{self, ModelSelection};
use crate::project::template_loading;
use crate::ui::RunHeader;

impl Chat<'_> {
    /// Starts a run.
    pub(crate) async fn begin(&mut self, errand: RunRequest) -> Result<StartedRun, CliError> {
        match errand {
            RunRequest::Words(words) => self.start_text(words).await,
            RunRequest::Task(line) => self.begin_task(&line).await,
            RunRequest::Review(line) => self.begin_review(&line).await,
        }
    }

    async fn start_text(&mut self, message: String) -> Result<StartedRun, CliError> {
        let workspace = Workspace::open(&self.project.directory);
        let AttachedFiles { background, problems } = match &workspace {
            Ok(workspace) => file_mentions::gather(&message, workspace),
            Err(_) => AttachedFiles::default(),
        };
        let settings = RunSpec { background, plan: self.plan.clone(), ..self.next_settings(message)? };
        let templates = template_loading::needed(&settings, &self.project, &self.process.environment);
        let begun = self.start(settings, Arc::clone(&self.model), templates, problems).await?;
        self.opened.clear();
        (self.plan, self.plan_draft) = (None, None);
        Ok(begun)
    }

    /// The settings for a message to the model.
    pub(super) fn next_settings(&self, message: String) -> Result<RunSpec, CliError> {
        let (prompt, opened) = (self.prompt.clone(), self.opened.clone());
        Ok(RunSpec { prompt, opened, ..self.settings(message, &self.choice)? })
    }

    async fn begin_task(&mut self, line: &str) -> Result<StartedRun, CliError> {
        let ReadyTask { work, model, loaded, notes } =
            task::ready(line, &mut self.templates, &self.project, self.process)?;
        let own = model.filter(|_| !self.model_was_said());
        let own = own
            .map(|model| ModelSelection::named(&model, &self.config, &self.process.environment))
            .transpose()?;
        let model = match &own {
            Some(choice) => choice.open(None)?,
            None => Arc::clone(&self.model),
        };
        let request = if line.starts_with('(') { line.to_owned() } else { format!("/task {line}") };
        let choice = own.as_ref().unwrap_or(&self.choice);
        let settings = RunSpec { work, flow: FlowSettings::default(), ..self.settings(request, choice)? };
        let templates = template_loading::for_run(loaded, &self.project);
        self.start(settings, model, templates, notes).await
    }

    async fn begin_review(&mut self, line: &str) -> Result<StartedRun, CliError> {
        let (review, request) = review::of_line(line, &self.project, self.process)?;
        let settings = RunSpec {
            // A reviewer changes nothing, so there is nothing to approve.
            review: Some(ReviewPolicy { require_approval: false, ..ReviewPolicy::default() }),
            code_review: Some(review),
            ..self.settings(request, &self.choice)?
        };
        self.start(settings, Arc::clone(&self.model), TemplateSource::default(), Vec::new()).await
    }

    /// Whether the user chose the model for this chat, which overrides the model of a template.
    fn model_was_said(&self) -> bool {
        let said = self.config.value("model").map(|(_, origin)| origin);
        matches!(said, Some(ValueOrigin::Flag(_) | ValueOrigin::Variable(_)))
    }

    fn settings(&self, request: String, choice: &ModelSelection) -> Result<RunSpec, CliError> {
        Ok(RunSpec {
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
            ..RunSpec::new(request, choice.name.clone(), &self.project.directory)
        })
    }

    async fn start(
        &mut self,
        settings: RunSpec,
        model: Arc<dyn Model>,
        templates: TemplateSource,
        problems: Vec<String>,
    ) -> Result<StartedRun, CliError> {
        let plan = RunHeader::of(&settings);
        let others = model_selection::stage_models(&settings, &self.config, &self.process.environment)?;
        let given = self.servers.clone().attach_to(self.resources(model));
        let id = clock::new_run_id()?;
        let running = run::start(&id, settings, RunDeps { others, templates, ..given }).await?;
        self.carry = CarryOver::Whole;
        Ok(StartedRun { running, plan, problems })
    }
}
