//! In-process models: `local:PATH.gguf`, with the feature `local`. They receive the same request bytes as a
//! server (`request`), use the chat template in the model file (`template`), and a grammar constrains replies
//! to a schema (`schema_grammar`, `sampling`). llama.cpp does the inference on a thread of its own
//! (`worker`).

mod file;
mod load_log;
mod reasoning;
mod request;
mod sampling;
mod schema_grammar;
mod template;
mod worker;

use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use self::reasoning::{ReasoningPart, ReasoningSplitter};
use self::request::LocalRequest;
use self::worker::{Job, ModelHandle, Piece, ReplyEnd};
use crate::schema_calls::{AddedMessages, SchemaRequest};
use crate::wire::stream::DeltaSink;
use crate::{
    BoxFuture, CancellationToken, Connection, Conversation, Dialect, ErrorKind, Model, ModelError, OpenError,
    Reasoning, Reply, ReplyDelta, RequestOptions, StopReason, Usage, call_protocol,
};

/// Capacity of the channel between the worker and the reader of a reply.
const AHEAD: usize = 64;
/// How long a cancellation waits for inference to stop; it stops at its next token in any case.
const STOP_TIME: Duration = Duration::from_secs(1);
/// Maximum number of threads; with more, they wait for each other longer than they compute.
const MAX_THREADS: usize = 16;

/// A model loaded from a file.
pub(crate) struct LocalModel {
    name: String,
    dialect: Dialect,
    jobs: Arc<SyncSender<Job>>,
}

impl LocalModel {
    /// Checks that the file exists and is a GGUF file; it is loaded with the first request.
    pub(crate) fn open(
        name: &str,
        path: &Path,
        dialect: Dialect,
        settings: &Connection,
    ) -> Result<LocalModel, OpenError> {
        file::check(path).map_err(OpenError::File)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let held = ModelHandle {
            path: path.canonicalize().unwrap_or_else(|_| path.to_owned()),
            context_tokens: settings.context_tokens,
            threads: settings.threads.unwrap_or(cores).clamp(1, MAX_THREADS),
        };
        let jobs = in_memory(held)
            .map_err(|error| OpenError::Settings(format!("cannot start a thread for the model: {error}")))?;
        Ok(LocalModel { name: name.to_owned(), dialect, jobs })
    }

    async fn request(
        &self,
        conversation: &Conversation,
        more: Option<AddedMessages<'_>>,
        options: &RequestOptions,
        sink: &mut DeltaSink<'_>,
    ) -> Result<Reply, ModelError> {
        let asked = LocalRequest::read(&conversation.body_with(more, &self.name, options).to_vec())?;
        let (sender, mut pieces) = mpsc::channel(AHEAD);
        self.send(Job::Ask(Box::new(asked), sender))?;
        let mut progress = ReplyProgress::default();
        let mut thinking = ReasoningSplitter::new(false);
        while let Some(piece) = pieces.recv().await {
            match piece {
                Piece::Begins { thinks } => {
                    sink(ReplyDelta::Started);
                    thinking = ReasoningSplitter::new(thinks);
                }
                Piece::Text(more) => thinking.take(&more, &mut |part| progress.take(part, sink)),
                Piece::End(ended) => {
                    let ReplyEnd { stop, usage } = ended?;
                    thinking.end(&mut |part| progress.take(part, sink));
                    return Ok(progress.reply(stop, usage));
                }
            }
        }
        Err(worker_ended())
    }

    fn send(&self, job: Job) -> Result<(), ModelError> {
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => {
                ModelError::new(ErrorKind::RateLimited, "too many requests are queued for the local model")
            }
            TrySendError::Disconnected(_) => worker_ended(),
        })
    }
}

/// The parts of a reply received so far.
#[derive(Default)]
struct ReplyProgress {
    text: String,
    thought: String,
}

impl ReplyProgress {
    fn take(&mut self, part: ReasoningPart<'_>, sink: &mut DeltaSink<'_>) {
        match part {
            ReasoningPart::Thought(more) => {
                sink(ReplyDelta::Reasoning(more));
                self.thought.push_str(more);
            }
            ReasoningPart::Said(more) => {
                sink(ReplyDelta::Text(more));
                self.text.push_str(more);
            }
        }
    }

    fn reply(self, stop: StopReason, usage: Usage) -> Reply {
        let thought = Some(self.thought).filter(|thought| !thought.is_empty());
        let reasoning = thought.map(|text| Reasoning { text, opaque: Vec::new() });
        Reply { text: self.text, reasoning, usage: Some(usage), stop, ..Reply::default() }
    }
}

fn worker_ended() -> ModelError {
    ModelError::new(ErrorKind::Cut, "the local model's thread ended unexpectedly")
}

impl Model for LocalModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn send<'a>(
        &'a self,
        conversation: &'a Conversation,
        options: &'a RequestOptions,
        sink: &'a mut (dyn FnMut(ReplyDelta<'_>) + Send),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let outcome = tokio::select! {
                biased;
                () = cancel.cancelled() => None,
                outcome = call_protocol::attempt(self, self.dialect, conversation, options, sink) => Some(outcome),
            };
            if let Some(outcome) = outcome {
                return outcome;
            }
            // The next job in the queue is answered only after inference has stopped, so that a process
            // exiting after this does not terminate the thread in the middle of its work.
            let _ = timeout(STOP_TIME, self.context_tokens()).await;
            Err(ModelError::cancelled())
        })
    }

    fn context_tokens<'a>(&'a self) -> BoxFuture<'a, Option<u64>> {
        Box::pin(async {
            let (sender, receiver) = oneshot::channel();
            self.send(Job::Context(sender)).ok()?;
            receiver.await.ok().flatten()
        })
    }
}

impl SchemaRequest for LocalModel {
    fn exchange<'a>(
        &'a self,
        conversation: &'a Conversation,
        more: Option<AddedMessages<'a>>,
        options: &'a RequestOptions,
        sink: &'a mut DeltaSink<'_>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(self.request(conversation, more, options, sink))
    }
}

/// Models in memory. A conversation opens its model again for every request, so the last one is kept along
/// with its context; others stay as long as they are referenced.
struct LoadedModels {
    last: Option<Arc<SyncSender<Job>>>,
    all: Vec<(ModelHandle, Weak<SyncSender<Job>>)>,
}

fn in_memory(held: ModelHandle) -> std::io::Result<Arc<SyncSender<Job>>> {
    static MODELS: Mutex<LoadedModels> = Mutex::new(LoadedModels { last: None, all: Vec::new() });
    let mut models = MODELS.lock();
    models.all.retain(|(_, jobs)| jobs.strong_count() > 0);
    let known = models.all.iter().find(|(known, _)| *known == held).and_then(|(_, jobs)| jobs.upgrade());
    let jobs = match known {
        Some(jobs) => jobs,
        None => {
            let jobs = Arc::new(worker::start(held.clone())?);
            models.all.push((held, Arc::downgrade(&jobs)));
            jobs
        }
    };
    models.last = Some(jobs.clone());
    Ok(jobs)
}

#[cfg(test)]
mod tests;
