//! Searches the index for a task's files, optionally ranked by the model: one journaled request before the
//! task starts. If it fails in any way, the ranking by words is kept.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use fusee_journal::event::Event;
use fusee_journal::{Branch, DurableRun, RunAborted, StepKind, StepMeta, StepRequest};
use fusee_model::{CancellationToken, Conversation, Message, Reply, StopReason};
use serde_json::{Value, json};

use crate::agent::{Attempt, AttemptResult, RANKING_ARGUMENT, RankBy, Session, Spent, within};
use crate::memory::journaled_query::{self, Details, QueryRecord};
use crate::memory::{FileMatch, MemoryAnswer, MemoryQuery, MemorySystem};
use crate::template::{OutputFormat, OutputKind, output};

/// Number of candidates shown to the model per requested file.
const CANDIDATES: usize = 4;

/// Maximum number of candidates shown to the model.
const MAX_CANDIDATES: usize = 60;

const SYSTEM: &str = "You choose which files of a project help with a task. You are given the task and files, each with what \
                      it says of itself and what it defines. Answer with a JSON array of their paths, the most helpful \
                      first, and nothing else. Leave out files that do not help. Call no tool.";

/// Dependencies of a search within a run.
pub(crate) struct RankedSearch<'a> {
    pub(crate) memory: &'a Arc<MemorySystem>,
    pub(crate) session: &'a Session,
    pub(crate) engine: &'a dyn DurableRun,
    pub(crate) branch: &'a Branch,
    pub(crate) cancel: &'a CancellationToken,
}

/// Files found for a task, and what finding them cost.
pub(crate) struct SearchResult {
    /// The files, or why the search failed.
    pub(crate) found: Result<MemoryAnswer, String>,
    /// Usage of the ranking request.
    pub(crate) spent: Spent,
    /// Why the ranking is by words although the model was asked.
    pub(crate) problem: Option<String>,
    /// Duration of the index search in milliseconds.
    pub(crate) search_ms: u64,
}

impl RankedSearch<'_> {
    /// Returns the files that match a query.
    pub(crate) async fn search(&self, query: MemoryQuery) -> Result<SearchResult, RunAborted> {
        let wanted = query.limit;
        let (limit, details) = match self.session.limits.memory_ranking {
            RankBy::Words => (wanted, Details::Omit),
            RankBy::Model => {
                (wanted.max((wanted.saturating_mul(CANDIDATES)).min(MAX_CANDIDATES)), Details::Include)
            }
        };
        let words = query.words.clone();
        let query = MemoryQuery { limit, ..query };
        let (looked, recorded) =
            journaled_query::asked(self.memory, self.engine, self.branch, query, details).await?;
        let search_ms = recorded.duration_ms;
        let by_words = |found| SearchResult { found, spent: Spent::default(), problem: None, search_ms };
        match looked {
            Err(problem) => Ok(by_words(Err(problem))),
            Ok(QueryRecord { found, .. }) if details == Details::Omit || found.matches.len() < 2 => {
                Ok(by_words(Ok(found)))
            }
            Ok(looked) => {
                let searched = self.ordered(&words, looked, wanted).await?;
                Ok(SearchResult { search_ms, ..searched })
            }
        }
    }

    async fn ordered(
        &self,
        words: &str,
        looked: QueryRecord,
        wanted: usize,
    ) -> Result<SearchResult, RunAborted> {
        let QueryRecord { mut found, about } = looked;
        let (attempt, recorded) = self.ask(request(words, &found, &about)).await?;
        let (active_ms, model_ms) = (recorded.duration_ms, recorded.duration_ms);
        let waited = Spent { active_ms, model_ms, ..Spent::default() };
        let (order, spent) = match attempt.result {
            AttemptResult::Reply(reply) => {
                let mut spent = waited;
                if let Some(usage) = &reply.usage {
                    spent.charges.add(self.session.limits.price, usage);
                }
                (chosen(&reply, &found), spent)
            }
            AttemptResult::Error { error, .. } => (Err(error.message), waited),
            AttemptResult::OutOfTime(_) => (Err("timed out".to_owned()), Spent::default()),
        };
        let problem = match order {
            Ok(order) => {
                apply(&mut found.matches, &order);
                None
            }
            Err(problem) => Some(problem),
        };
        found.matches.truncate(wanted);
        found.summary = crate::memory::summary(&found.matches, None);
        Ok(SearchResult { found: Ok(found), spent, problem, search_ms: 0 })
    }

    async fn ask(&self, request: String) -> Result<(Attempt, StepMeta), RunAborted> {
        let session = self.session;
        let call = StepRequest::new(self.branch, StepKind::Model, session.model.name())
            .with_args(json!({ RANKING_ARGUMENT: request }));
        let (cancel, silence_ms) =
            (self.cancel.clone(), u64::try_from(session.limits.silence().as_millis()).unwrap_or(u64::MAX));
        let send = async move {
            let mut conversation = Conversation::new(session.model.dialect(), SYSTEM.to_owned(), Vec::new());
            conversation.push(Message::user(request));
            let mut unseen = |_: fusee_model::ReplyDelta<'_>| {};
            let reply = session.model.send(&conversation, &session.options, &mut unseen, &cancel);
            Attempt::new(within(Some(silence_ms), reply).await)
        };
        let body = send;
        let (attempt, recorded) = self.engine.step::<Attempt>(call, body).await?.split();
        if recorded.replayed {
            attempt.result.notify(&*session.model);
        }
        Ok((attempt, recorded))
    }
}

/// Warning that the model was asked for a ranking but the files are ranked by words.
pub(crate) fn unordered(why: &str) -> Event {
    let message = format!("the model did not rank the files ({why}); ranked by words instead");
    Event::Warning { code: "memory_ranking".to_owned(), message }
}

fn request(words: &str, found: &MemoryAnswer, about: &BTreeMap<String, String>) -> String {
    let mut request = format!("The task:\n{words}\n\nThe files:\n");
    for FileMatch { path, .. } in &found.matches {
        let _ = writeln!(request, "- {path}: {}", about.get(path).map_or("", String::as_str));
    }
    request
}

/// Returns the paths named in the reply, limited to those that were shown to the model.
fn chosen(reply: &Reply, found: &MemoryAnswer) -> Result<Vec<String>, String> {
    match reply.stop {
        StopReason::Refusal => return Err("the model refused".to_owned()),
        StopReason::Length => return Err("the reply was cut off".to_owned()),
        _ if !reply.tool_calls.is_empty() => return Err("the model called a tool instead".to_owned()),
        _ => {}
    }
    let format = OutputFormat { kind: OutputKind::Json, schema: None };
    let output::OutputVerdict::Parsed(Value::Array(named)) =
        output::check_output(&reply.text, Some(&format), None, true)
    else {
        return Err("the answer is not a list of paths".to_owned());
    };
    let shown = |path: &&str| found.matches.iter().any(|found| found.path == *path);
    let mut order: Vec<String> = Vec::new();
    for path in named.iter().filter_map(Value::as_str).filter(shown) {
        if !order.iter().any(|other| other == path) {
            order.push(path.to_owned());
        }
    }
    if order.is_empty() { Err("the answer names none of the files".to_owned()) } else { Ok(order) }
}

/// Moves the named files to the front, in the model's order; the others keep theirs.
fn apply(matches: &mut [FileMatch], order: &[String]) {
    let place = |found: &FileMatch| order.iter().position(|path| *path == found.path).unwrap_or(usize::MAX);
    matches.sort_by_key(place);
    for (at, found) in matches.iter_mut().take(order.len()).enumerate() {
        found.reason = format!("the model's choice {}; {}", at + 1, found.reason);
    }
}

#[cfg(test)]
mod tests;
