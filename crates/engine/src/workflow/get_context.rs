//! `get-context`: searches the file index and returns the result as a value.

use fusee_journal::RunAborted;
use fusee_lang::{EffectFailure, ResumeInput};
use serde_json::{Map, Value as Json};

use super::driver::{EffectAnswer, WorkflowDriver};
use crate::memory::{FileMatch, MemoryQuery};
use crate::task_system::model_ranking::{RankedSearch, unordered};

/// Default number of files.
const USUAL: usize = 5;

/// Maximum number of files.
const MAX_FILES: usize = 1000;

/// Arguments that search words are taken from, most relevant first.
const WORDS: [&str; 5] = ["query", "inputs", "previous_outputs", "inherited_context", "history"];

/// A parsed `get-context` query.
#[derive(Debug, PartialEq, Eq)]
struct ContextQuery {
    query: MemoryQuery,
    /// Files that are included regardless of the words.
    listed: Vec<String>,
}

impl WorkflowDriver<'_> {
    pub(super) async fn context(&mut self, asked: Map<String, Json>) -> Result<EffectAnswer, RunAborted> {
        let wanted = match wanted(&asked) {
            Ok(wanted) => wanted,
            Err(message) => return Ok(failed("input_validation_failure", message)),
        };
        let ContextQuery { query, listed } = wanted;
        let context = self.context;
        let asking = RankedSearch {
            memory: &context.tasks.memory,
            session: &context.session,
            engine: &*context.engine,
            branch: &self.branch,
            cancel: &self.cancel,
        };
        let searched = asking.search(query).await?;
        self.active_ms += searched.search_ms + searched.spent.active_ms;
        context.spent.lock().add(&searched.spent);
        if let Some(why) = &searched.problem {
            context.engine.emit(&self.branch, unordered(why));
        }
        let mut answer = match searched.found {
            Ok(answer) => answer,
            Err(problem) => {
                let message = format!("cannot search the workspace: {problem}");
                return Ok(failed("context_matching_failure", message));
            }
        };
        answer.matches.retain(|found| !listed.contains(&found.path));
        let listed =
            listed.into_iter().map(|path| FileMatch { path, score: 1.0, reason: "listed".to_owned() });
        answer.matches.splice(0..0, listed);
        Ok(EffectAnswer::Go(ResumeInput::Json(serde_json::to_value(answer).unwrap_or_default())))
    }
}

/// Builds the query from the arguments, or reports what is wrong with them.
fn wanted(asked: &Map<String, Json>) -> Result<ContextQuery, String> {
    let mut words = Vec::new();
    for value in WORDS.iter().filter_map(|key| asked.get(*key)) {
        collect(value, &mut words);
    }
    let words = words.join(" ");
    let listed = match asked.get("files") {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Array(paths)) => paths
            .iter()
            .map(|path| {
                path.as_str()
                    .map(str::to_owned)
                    .ok_or_else(|| format!("`files` contains {path}, which is not a path"))
            })
            .collect::<Result<_, _>>()?,
        Some(other) => return Err(format!("`files` must be a list of paths, not {other}")),
    };
    if words.trim().is_empty() && listed.is_empty() {
        return Err("`get-context` has nothing to search for: set `query` or `inputs`".to_owned());
    }
    let limit = match asked.get("limit") {
        None | Some(Json::Null) => USUAL,
        Some(limit) => match limit.as_u64().and_then(|limit| usize::try_from(limit).ok()) {
            Some(limit @ 1..=MAX_FILES) => limit,
            _ => return Err(format!("`limit` must be an integer from 1 to {MAX_FILES}, not {limit}")),
        },
    };
    Ok(ContextQuery { query: MemoryQuery { words, limit }, listed })
}

/// Collects the texts in a value. Field names are skipped, because they belong to the program, not to the
/// files.
fn collect(value: &Json, words: &mut Vec<String>) {
    match value {
        Json::Null | Json::Bool(_) => {}
        Json::Number(number) => words.push(number.to_string()),
        Json::String(text) => words.push(text.clone()),
        Json::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Json::Object(fields) => fields.values().for_each(|field| collect(field, words)),
    }
}

fn failed(reason: &str, message: String) -> EffectAnswer {
    EffectAnswer::Go(ResumeInput::Failed(EffectFailure {
        kind: "TASK_FAILURE".to_owned(),
        reason: Some(reason.to_owned()),
        message,
        cause: None,
    }))
}

#[cfg(test)]
mod tests;
