//! A run with a prompt of its own or with a rule for its answer. Both are texts in the settings, so they are read again
//! with them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Settings, StartError, reviewed};
use crate::agent::{AgentTask, AnswerCheck, Disclosure, Earlier, JsonAnswer, Plan, json_wanted};
use crate::prompt::{
    AnyTask, DefaultPrompt, Environment, FileProblem, Outlined, Problem, Prompt, PromptFile, PromptKind,
};
use crate::review::Material;

/// Whether the prompt can be shown with this task, and the answer be checked; all problems at once.
pub(super) fn check(settings: &Settings) -> Result<(), StartError> {
    answer_check(settings).map_err(StartError::Prompt)?;
    disclosure(settings, None, BTreeSet::new()).map(drop).map_err(StartError::Prompt)
}

/// The task with its prompt, what it continues, and how its answer is checked.
pub(super) fn dressed(
    task: AgentTask,
    settings: &Settings,
    environment: &Environment,
    earlier: Option<Earlier>,
    material: Option<Material>,
) -> Result<AgentTask, String> {
    let before = earlier.iter().flat_map(|earlier| &earlier.opened);
    let opened: BTreeSet<String> = before.chain(&settings.opened).cloned().collect();
    let mut task = task;
    match (&settings.code_review, material) {
        (Some(review), Some(material)) => {
            task = reviewed::dressed(task, settings, review, material, environment, opened)?;
        }
        _ => match disclosure(settings, Some(environment), opened.clone())? {
            Some(disclosure) => task = task.disclosing(disclosure),
            None => task = usual(task, settings, environment, opened)?,
        },
    }
    if let Some((check, wanted)) = answer_check(settings)? {
        task = task.answering(check).adding(&wanted);
    }
    if let Some(plan) = &settings.plan {
        task = task.adding(&changed_plan(plan));
    }
    if let Some(earlier) = earlier {
        task = task.continuing(earlier);
    }
    Ok(match &settings.plan {
        Some(plan) => task.planned(plan.clone()),
        None => task,
    })
}

/// What a model is told of a plan that a person changed.
fn changed_plan(plan: &Plan) -> String {
    if plan.tasks().is_empty() {
        return "**I have dropped the plan.**".to_owned();
    }
    format!("**I have changed the plan. It is now:**\n{}", plan.render())
}

/// The sort of default prompt that the settings ask for.
pub(super) fn kind(settings: &Settings) -> PromptKind {
    PromptKind {
        review: settings.review.is_some(),
        planning: settings.flow.planning,
        direct: settings.flow.is_direct(),
    }
}

/// The task with the default prompt. It opens sections only where there are skills; else its text is all there is.
fn usual(
    task: AgentTask,
    settings: &Settings,
    environment: &Environment,
    opened: BTreeSet<String>,
) -> Result<AgentTask, String> {
    let DefaultPrompt { prompt, notices } = DefaultPrompt::new(environment, kind(settings)).map_err(told)?;
    let task = task.noticing(notices);
    if environment.skills.is_empty() {
        return Ok(task);
    }
    usually(&prompt, settings, opened).map(|disclosure| task.disclosing(disclosure))
}

/// A check of the answer, and what the model is told of it.
type Checked = (Arc<dyn AnswerCheck>, String);

/// How the answer is checked.
fn answer_check(settings: &Settings) -> Result<Option<Checked>, String> {
    let Some(schema) = &settings.output_schema else { return Ok(None) };
    let check = JsonAnswer::new(schema).map_err(|error| format!("the output schema is wrong: {error}"))?;
    Ok(Some((Arc::new(check), json_wanted(schema))))
}

/// All sections of the prompt that a run with these settings has, with what was opened before.
pub fn sections(
    settings: &Settings,
    environment: &Environment,
    opened: &BTreeSet<String>,
) -> Result<Vec<Outlined>, String> {
    shown(settings, environment, opened)?.outline().map_err(|problem| problem.to_string())
}

/// The sections that have to be opened so that this one is open.
pub fn open_section(
    settings: &Settings,
    environment: &Environment,
    opened: &BTreeSet<String>,
    key: &str,
) -> Result<BTreeSet<String>, String> {
    shown(settings, environment, opened)?.opening(key)
}

/// The prompt of a run with these settings, whether it is the usual one or not.
fn shown(
    settings: &Settings,
    environment: &Environment,
    opened: &BTreeSet<String>,
) -> Result<Disclosure, String> {
    let opened: BTreeSet<String> = opened.union(&settings.opened).cloned().collect();
    match disclosure(settings, Some(environment), opened.clone())? {
        Some(disclosure) => Ok(disclosure),
        None => {
            let usual = DefaultPrompt::new(environment, kind(settings)).map_err(told)?;
            usually(&usual.prompt, settings, opened)
        }
    }
}

/// The usual prompt bound to the task.
fn usually(
    prompt: &Prompt<AnyTask>,
    settings: &Settings,
    opened: BTreeSet<String>,
) -> Result<Disclosure, String> {
    let fields = Map::from_iter([("request".to_owned(), Value::from(settings.request.as_str()))]);
    Disclosure::new(prompt, &AnyTask(fields), opened).map_err(|problem| problem.to_string())
}

fn told(problems: Vec<Problem>) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The prompt bound to the task, if the settings have one.
fn disclosure(
    settings: &Settings,
    environment: Option<&Environment>,
    opened: BTreeSet<String>,
) -> Result<Option<Disclosure>, String> {
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
    let bound = Disclosure::new(&parsed, &AnyTask(fields), opened);
    bound.map(Some).map_err(|problem| format!("{file}: {problem}"))
}
