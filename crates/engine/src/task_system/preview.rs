//! Prompt preview without a run, for `fusee task --dry-run`. Files are read and searched as in a run; no
//! command is started.

use std::sync::Arc;

use fusee_model::CancellationToken;
use fusee_tools::{CallContext, Secrets, Workspace};

use super::context_loader::{NotIncluded, dedup, shown_file};
use super::error::{Reason, TaskError};
use super::file_sources::ListedFile;
use super::pipeline::ready;
use super::prompt::{ComposedPrompt, PreparedContext, SourceFile, compose};
use super::request::SubtaskRequest;
use crate::memory::{MemoryQuery, MemorySystem};
use crate::prompt::EnvironmentSnapshot;
use crate::template::{FilePaths, FreshContext, Template};

/// The prompt that a run would send first.
#[derive(Debug)]
pub struct Preview {
    /// The composed texts.
    pub composed: ComposedPrompt,
    /// The context they contain.
    pub prepared: PreparedContext,
    /// Parts that only a run can determine.
    pub left_out: Vec<String>,
}

/// Composes a task's prompt as far as it is known before the run.
pub async fn preview(
    template: &Template,
    request: &SubtaskRequest,
    workspace: &Arc<Workspace>,
    memory: &MemorySystem,
    environment: &EnvironmentSnapshot,
) -> Result<Preview, TaskError> {
    let prepared = ready(template, request)?;
    let (template, context) = (prepared.template, prepared.context);
    let (mut paths, mut left_out) = (Vec::new(), Vec::new());
    let failed = |problem: String| TaskError::failure(Reason::ContextMatchingFailure, problem);
    let search = |words: &str| {
        let found = memory.relevant_context_for(&MemoryQuery {
            words: words.to_owned(),
            limit: super::context_loader::MATCHES,
        });
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
    dedup(&mut paths);
    let named = paths.len();
    let searched = context.fresh_context == FreshContext::Enabled;
    if searched {
        let found = search(&super::context_loader::query_words(&template, request)).map_err(failed)?;
        paths.extend(found.into_iter().filter(|path| !paths.contains(path)).collect::<Vec<_>>());
    }
    let mut files = Vec::new();
    for (at, path) in paths.iter().enumerate() {
        match read(path, workspace).await {
            Ok(file) => files.push(file),
            Err(error) if at < named => return Err(error),
            // A file that was deleted or is no longer text since it was indexed is skipped.
            Err(_) => {}
        }
    }
    let prepared = PreparedContext { files, searched, listed: named > 0, ..PreparedContext::default() };
    let composed = compose(&template, &prepared, environment)
        .map_err(|problem| TaskError::invalid(Reason::XmlValidationFailure, problem))?;
    Ok(Preview { composed, prepared, left_out })
}

async fn read(path: &str, workspace: &Arc<Workspace>) -> Result<SourceFile, TaskError> {
    let context = CallContext {
        workspace: Arc::clone(workspace),
        call_id: "preview".to_owned(),
        cancel: CancellationToken::new(),
        progress: Arc::new(|_| {}),
        limits: fusee_tools::CallLimits::default(),
        trace_parent: None,
    };
    let listed = ListedFile::read(path, usize::MAX, &context, &Secrets::default()).await;
    shown_file(path, listed).map_err(|why| match why {
        NotIncluded::Failed(error) => *error,
        NotIncluded::TooLarge(said) => TaskError::failure(Reason::Context, said),
    })
}
