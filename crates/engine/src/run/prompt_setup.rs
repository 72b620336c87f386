//! Sets up the prompt and the answer check of a run. Both are stored as text in the settings, so they are
//! read again on resume.

use std::collections::BTreeSet;
use std::sync::Arc;

use fusee_model::Message;
use serde_json::{Map, Value};

use super::{RunSpec, StartError, review_setup};
use crate::agent::{
    AgentTask, AnswerCheck, JsonAnswer, Plan, PriorConversation, SectionedPrompt, check_conversation,
    json_wanted,
};
use crate::prompt::{
    AnyTask, DefaultPrompt, EnvironmentSnapshot, FileProblem, Outlined, Prompt, PromptFile, PromptKind,
    PromptProblem,
};
use crate::review::ReviewContext;

/// Checks that the prompt renders with this task and that the answer check and the input are valid; reports all
/// problems at once.
pub(super) fn check(settings: &RunSpec) -> Result<(), StartError> {
    let request = Message::user(settings.request.clone());
    let input: Vec<Message> = settings.input.iter().cloned().chain([request]).collect();
    check_conversation(&input).map_err(|problem| StartError::Prompt(format!("invalid input: {problem}")))?;
    if answer_check(settings).map_err(StartError::Prompt)?.is_some() && settings.flow.is_direct() {
        let problem = "the `direct` flow answers with files and cannot be combined with an output schema";
        return Err(StartError::Prompt(problem.to_owned()));
    }
    sectioned_prompt(settings, None, BTreeSet::new()).map(drop).map_err(StartError::Prompt)
}

/// Adds the prompt, the carried-over conversation and the answer check to the task.
pub(super) fn configure_prompt(
    task: AgentTask,
    settings: &RunSpec,
    environment: &EnvironmentSnapshot,
    earlier: Option<PriorConversation>,
    review_context: Option<ReviewContext>,
) -> Result<AgentTask, String> {
    let before = earlier.iter().flat_map(|earlier| &earlier.opened);
    let opened: BTreeSet<String> = before.chain(&settings.opened).cloned().collect();
    let mut task = task;
    match (&settings.code_review, review_context) {
        (Some(review), Some(review_context)) => {
            task =
                review_setup::configure_prompt(task, settings, review, review_context, environment, opened)?;
        }
        _ => match sectioned_prompt(settings, Some(environment), opened.clone())? {
            Some(sectioned_prompt) => task = task.with_prompt(sectioned_prompt),
            None => task = defaults(task, settings, environment, opened)?,
        },
    }
    if let Some((check, wanted)) = answer_check(settings)? {
        task = task.with_answer_check(check).with_answer_form(wanted);
    }
    if let Some(plan) = &settings.plan {
        task = task.append_request(&changed_plan(plan));
    }
    if earlier.is_some() || !settings.input.is_empty() {
        let mut prior = earlier.unwrap_or_default();
        prior.messages.extend(settings.input.iter().cloned());
        task = task.with_prior(prior);
    }
    Ok(match &settings.plan {
        Some(plan) => task.planned(plan.clone()),
        None => task,
    })
}

/// Tells the model about a plan that the user changed.
fn changed_plan(plan: &Plan) -> String {
    if plan.tasks().is_empty() {
        return "**I have dropped the plan.**".to_owned();
    }
    format!("**I have changed the plan. It is now:**\n{}", plan.render())
}

/// Returns the variant of the default prompt for these settings.
pub(super) fn kind(settings: &RunSpec) -> PromptKind {
    PromptKind {
        review: settings.review.is_some(),
        planning: settings.flow.planning,
        direct: settings.flow.is_direct(),
    }
}

/// Adds the default prompt to the task. Sections can be opened only if there are skills; otherwise it is
/// plain text.
fn defaults(
    task: AgentTask,
    settings: &RunSpec,
    environment: &EnvironmentSnapshot,
    opened: BTreeSet<String>,
) -> Result<AgentTask, String> {
    let DefaultPrompt { prompt, notices } =
        DefaultPrompt::new(environment, kind(settings)).map_err(problem_text)?;
    let task = task.with_warnings(notices);
    if environment.skills.is_empty() {
        return Ok(task);
    }
    default_prompt(&prompt, settings, opened).map(|sectioned_prompt| task.with_prompt(sectioned_prompt))
}

/// An answer check, and its description for the model.
type DescribedCheck = (Arc<dyn AnswerCheck>, String);

/// Returns the check of the answer, if the settings have an output schema.
fn answer_check(settings: &RunSpec) -> Result<Option<DescribedCheck>, String> {
    let Some(schema) = &settings.output_schema else { return Ok(None) };
    let check = JsonAnswer::new(schema).map_err(|error| format!("invalid output schema: {error}"))?;
    Ok(Some((Arc::new(check), json_wanted(schema))))
}

/// Returns all sections of the prompt of a run with these settings; `opened` holds those opened before.
pub fn sections(
    settings: &RunSpec,
    environment: &EnvironmentSnapshot,
    opened: &BTreeSet<String>,
) -> Result<Vec<Outlined>, String> {
    shown(settings, environment, opened)?.outline().map_err(|problem| problem.to_string())
}

/// Returns the sections that must be opened for this one to be open.
pub fn open_section(
    settings: &RunSpec,
    environment: &EnvironmentSnapshot,
    opened: &BTreeSet<String>,
    key: &str,
) -> Result<BTreeSet<String>, String> {
    shown(settings, environment, opened)?.opening(key)
}

/// Returns the prompt of a run with these settings, default or custom.
fn shown(
    settings: &RunSpec,
    environment: &EnvironmentSnapshot,
    opened: &BTreeSet<String>,
) -> Result<SectionedPrompt, String> {
    let opened: BTreeSet<String> = opened.union(&settings.opened).cloned().collect();
    match sectioned_prompt(settings, Some(environment), opened.clone())? {
        Some(sectioned_prompt) => Ok(sectioned_prompt),
        None => {
            let defaults = DefaultPrompt::new(environment, kind(settings)).map_err(problem_text)?;
            default_prompt(&defaults.prompt, settings, opened)
        }
    }
}

/// Binds the default prompt to the task.
fn default_prompt(
    prompt: &Prompt<AnyTask>,
    settings: &RunSpec,
    opened: BTreeSet<String>,
) -> Result<SectionedPrompt, String> {
    let fields = Map::from_iter([("request".to_owned(), Value::from(settings.request.as_str()))]);
    SectionedPrompt::new(prompt, &AnyTask(fields), opened).map_err(|problem| problem.to_string())
}

fn problem_text(problems: Vec<PromptProblem>) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Binds the custom prompt to the task, if the settings have one.
fn sectioned_prompt(
    settings: &RunSpec,
    environment: Option<&EnvironmentSnapshot>,
    opened: BTreeSet<String>,
) -> Result<Option<SectionedPrompt>, String> {
    let Some(prompt) = &settings.prompt else { return Ok(None) };
    let opened = opened.into_iter().chain(prompt.opened.iter().cloned()).collect();
    let file = &prompt.file;
    let parsed = match environment {
        Some(environment) => PromptFile::parse_for(&prompt.text, environment),
        None => PromptFile::parse(&prompt.text),
    };
    let parsed = parsed.map_err(|problem| match problem {
        FileProblem::Syntax(message) => format!("{file}: {message}"),
        FileProblem::Content(problems) => {
            problems.iter().map(|problem| format!("{file}: {problem}")).collect::<Vec<_>>().join("\n")
        }
    })?;
    let mut fields = Map::from_iter([("request".to_owned(), Value::from(settings.request.as_str()))]);
    if let Some(background) = &settings.background {
        fields.insert("background".to_owned(), background.as_str().into());
    }
    for (name, value) in &prompt.fields {
        fields.entry(name).or_insert_with(|| value.clone());
    }
    let bound = SectionedPrompt::new(&parsed, &AnyTask(fields), opened);
    bound.map(Some).map_err(|problem| format!("{file}: {problem}"))
}
