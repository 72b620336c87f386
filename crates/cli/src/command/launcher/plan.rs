//! What a run would do: the model, the limits and the first prompt, or the calls of a workflow. Takes the path of
//! `CommandLauncher::launch` up to the point where something would be started.

use fusee::engine::run::SandboxMode;
use fusee::launch::{LaunchLimits, LaunchPlan, LaunchRequest, LaunchWork, PromptPart};

use super::super::run_setup::RunTarget;
use super::super::{prompt, run, task};
use super::{CommandLauncher, target};
use crate::config::Config;
use crate::model_selection;
use crate::process::error::CliError;
use crate::project::Project;

impl CommandLauncher {
    /// Plans a run.
    pub(super) async fn planned(&self, request: &LaunchRequest) -> Result<LaunchPlan, CliError> {
        let directory = request.directory.as_deref().unwrap_or(&self.directory);
        let project = self.project(directory)?;
        let target = target(&request.work, &project, &self.process)?;
        let args = self.args(request)?;
        let environment = &self.process.environment;
        let config = run::configured(&args, &target, &project, environment)?;
        let model = match run::needs_model(&target, &config) {
            true => Some(model_selection::find(&config, environment).await?),
            false => None,
        };
        let (mut prompt, mut calls, mut flow) = (Vec::new(), String::new(), None);
        match &target {
            RunTarget::Request(words) => {
                prompt = sections(words, &project, &config)?;
                prompt.push(part("Request", words));
                flow = Some(config.flow()?.mode.name().to_owned());
            }
            RunTarget::Review(_, words) => prompt.push(part("Request", words)),
            RunTarget::Task(ready) => match task::preview(ready, &project, &self.process).await? {
                task::TaskPreview::Template(system, request) => {
                    prompt = vec![part("System prompt", &system), part("Request", &request)];
                }
                task::TaskPreview::Workflow(text) => calls = text,
            },
        }
        let limits = config.limits();
        Ok(LaunchPlan {
            context_tokens: model.as_ref().and_then(|model| model.context_tokens),
            price: model.as_ref().and_then(|model| model.price),
            model: model.map(|model| model.name).unwrap_or_default(),
            approve: config.approve(),
            sandbox: match config.sandbox() {
                SandboxMode::On => "on",
                SandboxMode::Off => "off",
            },
            flow,
            verify: config
                .text("verify")
                .filter(|_| matches!(request.work, LaunchWork::Request(_)))
                .map(str::to_owned),
            limits: LaunchLimits {
                max_turns: Some(limits.max_turns),
                max_tokens: Some(limits.max_tokens),
                timeout_s: limits.task_timeout_s,
                patience_s: limits.patience_s,
                budget_usd: limits.budget_usd,
            },
            prompt,
            calls,
        })
    }
}

/// The sections of the prompt of a request, as far as they are shown.
pub(super) fn sections(
    request: &str,
    project: &Project,
    config: &Config,
) -> Result<Vec<PromptPart>, CliError> {
    let outline = prompt::of_request(request, project, config)?;
    let shown = outline.into_iter().filter(|section| !section.shown.is_empty());
    Ok(shown.map(|section| PromptPart { title: section.title, text: section.shown }).collect())
}

fn part(title: &str, text: &str) -> PromptPart {
    PromptPart { title: title.to_owned(), text: text.to_owned() }
}
