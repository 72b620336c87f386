//! A run with a prompt of its own: the file's text is part of the settings, so it is read again with them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Settings, StartError};
use crate::agent::Disclosure;
use crate::prompt::{AnyTask, FileProblem, PromptFile};

/// Whether the prompt can be shown with this task, all problems at once.
pub(super) fn check(settings: &Settings) -> Result<(), StartError> {
    disclosure(settings, BTreeSet::new()).map(drop).map_err(StartError::Prompt)
}

/// The prompt bound to the task, if the settings have one.
pub(super) fn disclosure(
    settings: &Settings,
    opened: BTreeSet<String>,
) -> Result<Option<Disclosure>, String> {
    let Some(prompt) = &settings.prompt else { return Ok(None) };
    let file = &prompt.file;
    let parsed = PromptFile::parse(&prompt.text).map_err(|problem| match problem {
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
