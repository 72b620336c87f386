//! What a model would be told, without a run: for `fusee task --dry-run`. Files are read and searched as a run would;
//! no command is started.

use std::sync::Arc;

use fusee_model::CancellationToken;
use fusee_tools::{CallContext, CommandSettings, Toolbox, Workspace};
use serde_json::json;

use super::compose::{Composed, Prepared, ReadFile, compose};
use super::error::{Reason, TaskError};
use super::execute::ready;
use super::request::{FreshContext, SubtaskRequest};
use crate::memory::{Memory, Query};
use crate::prompt::Environment;
use crate::template::{FilePaths, Template};

/// What would be sent first.
#[derive(Debug)]
pub struct Preview {
    /// The texts.
    pub composed: Composed,
    /// What they were made with.
    pub prepared: Prepared,
    /// What only a run would find out.
    pub left_out: Vec<String>,
}

/// Shows a task as far as it can be known before it runs.
pub async fn preview(
    template: &Template,
    request: &SubtaskRequest,
    workspace: &Arc<Workspace>,
    memory: &Memory,
    environment: &Environment,
) -> Result<Preview, TaskError> {
    let prepared = ready(template, request)?;
    let (template, context) = (prepared.template, prepared.context);
    let (mut paths, mut left_out) = (Vec::new(), Vec::new());
    let failed = |problem: String| TaskError::failure(Reason::ContextMatchingFailure, problem);
    let search = |words: &str| {
        let found = memory.relevant(&Query { words: words.to_owned(), limit: super::prepare::MATCHES });
        found.map(|answer| answer.matches.into_iter().map(|found| found.path).collect::<Vec<_>>())
    };
    match (&request.file_paths, &template.file_paths) {
        (Some(given), _) | (None, Some(FilePaths::Literal(given))) => paths.extend(given.iter().cloned()),
        (None, Some(FilePaths::Command(command))) => {
            left_out.push(format!("the files that `{command}` prints"))
        }
        (None, Some(FilePaths::Description(words) | FilePaths::ContextDescription(words))) => {
            paths.extend(search(words).map_err(failed)?);
        }
        (None, None) => {}
    }
    let listed = !paths.is_empty();
    let searched = context.fresh_context == FreshContext::Enabled;
    if searched {
        let found = search(&super::prepare::query_words(&template, request)).map_err(failed)?;
        paths.extend(found.into_iter().filter(|path| !paths.contains(path)).collect::<Vec<_>>());
    }
    let mut files = Vec::new();
    for path in paths {
        files.push(read(&path, workspace).await?);
    }
    let prepared = Prepared { files, searched, listed, ..Prepared::default() };
    let composed = compose(&template, &prepared, environment)
        .map_err(|problem| TaskError::invalid(Reason::XmlValidationFailure, problem))?;
    Ok(Preview { composed, prepared, left_out })
}

async fn read(path: &str, workspace: &Arc<Workspace>) -> Result<ReadFile, TaskError> {
    let failed = |said: &str| {
        let message = format!("the file `{path}` cannot be shown: {}", said.trim());
        TaskError::failure(Reason::ContextRetrievalFailure, message)
    };
    let toolbox = Toolbox::standard(CommandSettings::default());
    let tool = toolbox.find("read_file").ok_or_else(|| failed("there is no tool to read it"))?;
    let context = CallContext {
        workspace: Arc::clone(workspace),
        call_id: "preview".to_owned(),
        cancel: CancellationToken::new(),
        progress: Arc::new(|_| {}),
        limits: fusee_tools::Limits::default(),
    };
    let output = match tool.prepare(json!({ "path": path }), &context).await {
        Ok(prepared) => tool.perform(prepared, &context).await,
        Err(answer) => answer,
    };
    if output.ok {
        Ok(ReadFile { path: path.to_owned(), content: output.content })
    } else {
        Err(failed(&output.content))
    }
}
