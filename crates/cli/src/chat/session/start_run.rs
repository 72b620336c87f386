//! Starts the runs of a chat: for a message, a task or a review. The commands with the same names outside of
//! the chat define what a task and a review are.

use std::sync::Arc;

use fusee::engine::agent::ReviewPolicy;
use fusee::engine::run::{CarryOver, RunBuilder};
use fusee::engine::tools::{CallLimits, Workspace};
use fusee::launch::INIT_REQUEST;

use super::{Chat, ChatRun};
use crate::chat::commands::RunRequest;
use crate::command::review;
use crate::command::run_setup::RunTarget;
use crate::command::task;
use crate::config::ValueOrigin;
use crate::model_selection;
use crate::process::error::CliError;
use crate::project::file_mentions::{self, AttachedFiles};

/// What the model is told in plan mode.
const PLANNING: &str = "Plan mode: look at the project and plan, but change nothing; tools that change something are \
refused. Answer with the plan: the files to change and how, the order, and how the result is verified. The user decides \
afterwards whether it is carried out.";

impl Chat<'_> {
    /// Starts a run.
    pub(crate) async fn begin(&mut self, request: RunRequest) -> Result<ChatRun, CliError> {
        match request {
            RunRequest::Words(words) => self.start_text(words).await,
            RunRequest::Task(line) => self.begin_task(&line).await,
            RunRequest::Review(line) => self.begin_review(&line).await,
            RunRequest::Init => self.start_text(INIT_REQUEST.to_owned()).await,
            RunRequest::Command { message, .. } => self.start_text(message).await,
        }
    }

    async fn start_text(&mut self, message: String) -> Result<ChatRun, CliError> {
        let workspace = Workspace::open(&self.setup.project.directory);
        let image_bytes = match self.setup.resolved.connection.traits.images {
            true => CallLimits::IMAGE_BYTES,
            false => 0,
        };
        let AttachedFiles { background, images, problems } = match &workspace {
            Ok(workspace) => file_mentions::gather(&message, workspace, image_bytes),
            Err(_) => AttachedFiles::default(),
        };
        let mut builder = self.next_run(message)?;
        let commands = std::mem::take(&mut self.commands);
        let planning = self.plan_mode.then(|| PLANNING.to_owned());
        let background: Vec<String> = planning.into_iter().chain(commands).chain(background).collect();
        builder.spec.background = (!background.is_empty()).then(|| background.join("\n\n"));
        builder.spec.images = images;
        if self.plan_mode {
            let restrictions = self.setup.config.restrictions();
            builder.spec.review = Some(ReviewPolicy { require_approval: false, ..restrictions });
        }
        builder.spec.plan.clone_from(&self.plan);
        let begun = self.start(builder, problems).await?;
        self.opened.clear();
        (self.plan, self.plan_draft) = (None, None);
        Ok(begun)
    }

    /// The run of a message to the model.
    pub(super) fn next_run(&self, message: String) -> Result<RunBuilder, CliError> {
        let mut builder = self.setup.builder(RunTarget::Request(message))?;
        builder.spec.prompt.clone_from(&self.prompt);
        builder.spec.opened.clone_from(&self.opened);
        Ok(builder)
    }

    async fn begin_task(&mut self, line: &str) -> Result<ChatRun, CliError> {
        let setup = &self.setup;
        let mut task = task::ready(line, &mut self.templates, &setup.project, setup.process)?;
        let notes = std::mem::take(&mut task.notes);
        let own = task.model.take().filter(|_| !self.is_model_explicit());
        let target = RunTarget::Task(Box::new(task));
        let builder = match own {
            Some(model) => {
                let resolved = model_selection::named(&model, &setup.config, &setup.process.environment)?;
                let resolved =
                    model_selection::with_display(resolved, &setup.config, &setup.process.environment)?;
                let model = model_selection::open(&resolved, None)?;
                setup.builder_with(target, &resolved, model)?
            }
            None => setup.builder(target)?,
        };
        self.start(builder, notes).await
    }

    async fn begin_review(&mut self, line: &str) -> Result<ChatRun, CliError> {
        let (review, request) = review::of_line(line, &self.setup.project, self.setup.process)?;
        let builder = self.setup.builder(RunTarget::Review(Box::new(review), request))?;
        self.start(builder, Vec::new()).await
    }

    /// Whether the user chose the model for this chat, which overrides the model of a template.
    fn is_model_explicit(&self) -> bool {
        let said = self.setup.config.value("model").map(|(_, origin)| origin);
        matches!(said, Some(ValueOrigin::Flag(_) | ValueOrigin::Variable(_)))
    }

    async fn start(&mut self, mut builder: RunBuilder, problems: Vec<String>) -> Result<ChatRun, CliError> {
        builder.spec.continues.clone_from(&self.continues);
        builder.spec.carry = self.carry;
        builder.spec.approve = self.approve;
        builder.deps.approver = Arc::clone(&self.approver);
        let started = self.setup.start(builder, None).await?;
        #[cfg(feature = "serve")]
        self.note_run(&started);
        self.carry = CarryOver::Whole;
        Ok(ChatRun { started, problems })
    }
}
