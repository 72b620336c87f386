//! The thread that holds a model in memory. Requests queue and are answered one after the other; the context
//! of the last one is kept, and only the part of a prompt that differs from it is evaluated. A request whose
//! receiver is gone is abandoned at the next token. `template` renders prompts and `sampling` selects tokens;
//! `super` sends the requests.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::{LogOptions, send_logs_to_tracing};
use tokio::sync::mpsc::Sender;

use super::load_log;
use super::request::LocalRequest;
use super::sampling::Sampling;
use super::template::{ChatPrompt, ChatTemplate};
use crate::{ErrorKind, ModelError, StopReason, Usage};

/// Capacity of the request queue; when it is full, requests fail with a retriable error.
const LINE: usize = 64;
/// Prompt tokens evaluated per batch; a request can be cancelled between batches. Larger batches are hardly
/// faster. The size is constant, because it affects the last bits of the logits.
const PART: usize = 64;
/// Default context size; its memory is allocated when the model is loaded.
const CONTEXT_TOKENS: u64 = 16_384;
/// Smaller contexts cannot hold a task at all.
const LEAST_CONTEXT_TOKENS: u64 = 256;

/// Which model to load, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelHandle {
    pub(super) path: PathBuf,
    pub(super) context_tokens: Option<u64>,
    pub(super) threads: usize,
}

/// A request to the worker thread.
pub(super) enum Job {
    /// Generate a reply and stream it.
    Ask(Box<LocalRequest>, Sender<Piece>),
    /// Report the size of the context.
    Context(tokio::sync::oneshot::Sender<Option<u64>>),
}

/// A message from the worker thread.
pub(super) enum Piece {
    /// The prompt is evaluated; `thinks` tells whether the reply starts with reasoning.
    Begins { thinks: bool },
    /// More of the reply.
    Text(String),
    /// The request has ended.
    End(Result<ReplyEnd, ModelError>),
}

/// Final state of a reply.
pub(super) struct ReplyEnd {
    pub(super) stop: StopReason,
    pub(super) usage: Usage,
}

/// Starts a thread for a model. It loads the model with the first request and ends when all senders are
/// dropped.
pub(super) fn start(held: ModelHandle) -> std::io::Result<SyncSender<Job>> {
    let (asking, jobs) = sync_channel(LINE);
    std::thread::Builder::new().name("local model".to_owned()).spawn(move || work(&held, &jobs))?;
    Ok(asking)
}

fn work(held: &ModelHandle, jobs: &Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        match LoadedModel::open(held) {
            Ok(loaded) => return serve(&loaded, held, job, jobs),
            // The next request tries again: the file may have been fixed by then.
            Err(message) => refuse(job, &message),
        }
    }
}

fn refuse(job: Job, message: &str) {
    match job {
        Job::Ask(_, pieces) => {
            let _ = pieces.blocking_send(Piece::End(Err(ModelError::new(ErrorKind::Invalid, message))));
        }
        Job::Context(sender) => _ = sender.send(None),
    }
}

/// A loaded model, without a context.
struct LoadedModel {
    backend: &'static LlamaBackend,
    model: LlamaModel,
    template: ChatTemplate,
    context_tokens: u32,
}

/// Initializes llama.cpp once per process.
fn backend() -> Result<&'static LlamaBackend, String> {
    static BACKEND: LazyLock<Result<LlamaBackend, String>> = LazyLock::new(|| {
        send_logs_to_tracing(LogOptions::default());
        LlamaBackend::init().map_err(|error| format!("cannot initialize llama.cpp: {error}"))
    });
    BACKEND.as_ref().map_err(Clone::clone)
}

impl LoadedModel {
    fn open(held: &ModelHandle) -> Result<LoadedModel, String> {
        let shown = held.path.display();
        super::file::check(&held.path)?;
        let backend = backend()?;
        let (model, errors) = load_log::capture_errors(|| {
            LlamaModel::load_from_file(backend, &held.path, &LlamaModelParams::default())
        });
        let model = model.map_err(|_| {
            let why = errors.first().map_or("llama.cpp rejects it", String::as_str);
            format!("cannot load the model {shown}: {why}")
        })?;
        let template = template(&model).map_err(|why| format!("the model {shown}: {why}"))?;
        let trained = u64::from(model.n_ctx_train()).max(LEAST_CONTEXT_TOKENS);
        let wanted = held.context_tokens.unwrap_or(CONTEXT_TOKENS).clamp(LEAST_CONTEXT_TOKENS, trained);
        let context_tokens = u32::try_from(wanted).unwrap_or(u32::MAX);
        Ok(LoadedModel { backend, model, template, context_tokens })
    }

    fn context(&self, held: &ModelHandle) -> Result<LlamaContext<'_>, String> {
        let threads = i32::try_from(held.threads.max(1)).unwrap_or(1);
        let part = u32::try_from(PART).unwrap_or(u32::MAX);
        let settings = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(self.context_tokens))
            .with_n_batch(part)
            .with_n_ubatch(part)
            .with_n_threads(threads)
            .with_n_threads_batch(threads);
        let (context, errors) = load_log::capture_errors(|| self.model.new_context(self.backend, settings));
        context.map_err(|error| {
            let why = errors.first().cloned().unwrap_or_else(|| error.to_string());
            format!(
                "no memory for a context of {} tokens: {why}; set a smaller context_tokens",
                self.context_tokens
            )
        })
    }
}

fn template(model: &LlamaModel) -> Result<ChatTemplate, String> {
    let vocab = model.vocab();
    let mark = |token: LlamaToken| match token.0 {
        0.. => String::from_utf8_lossy(&vocab.token_to_piece(token, true, None)).into_owned(),
        _ => String::new(),
    };
    let source = model.meta_val_str("tokenizer.chat_template").ok().filter(|source| !source.is_empty());
    ChatTemplate::read(source, mark(vocab.bos()), mark(vocab.eos()))
}

fn serve(loaded: &LoadedModel, held: &ModelHandle, first: Job, jobs: &Receiver<Job>) {
    let mut context = match loaded.context(held) {
        Ok(context) => context,
        Err(message) => {
            refuse(first, &message);
            while let Ok(job) = jobs.recv() {
                refuse(job, &message);
            }
            return;
        }
    };
    let mut seat = ContextSlot { loaded, context: &mut context, evaluated: Vec::new() };
    let mut next = Some(first);
    while let Some(job) = next {
        match job {
            Job::Context(sender) => _ = sender.send(Some(loaded.context_tokens.into())),
            Job::Ask(asked, pieces) => {
                let ended = seat.answer(&asked, &pieces);
                let _ = pieces.blocking_send(Piece::End(ended));
            }
        }
        next = jobs.recv().ok();
    }
}

/// The model's single sequence, and what its context holds.
struct ContextSlot<'l, 'c> {
    loaded: &'l LoadedModel,
    context: &'c mut LlamaContext<'l>,
    /// Tokens in the context, in order.
    evaluated: Vec<LlamaToken>,
}

impl ContextSlot<'_, '_> {
    fn answer(&mut self, asked: &LocalRequest, pieces: &Sender<Piece>) -> Result<ReplyEnd, ModelError> {
        let (prompt, thinks) = self.tokens(asked)?;
        let room = self.loaded.context_tokens as usize;
        if prompt.len() >= room {
            return Err(ModelError::new(
                ErrorKind::Overflow,
                format!(
                    "the request has {} tokens, which exceeds the available context size ({room} tokens)",
                    prompt.len()
                ),
            ));
        }
        let mut sampling = Sampling::new(&self.loaded.model, asked)?;
        let kept = self.keep_common(&prompt);
        let mut at = self.evaluate_prompt(&prompt, kept, pieces)?;
        pieces.blocking_send(Piece::Begins { thinks }).map_err(|_| ModelError::cancelled())?;
        let most = asked.max_tokens.map_or(usize::MAX, |most| most as usize);
        let mut writing = TokenDecoder::default();
        let mut said = 0;
        let stop = loop {
            if said >= most || self.evaluated.len() >= room {
                break StopReason::Length;
            }
            let token = sampling.next(self.context, at)?;
            said += 1;
            if self.loaded.model.vocab().is_eog(token) {
                break StopReason::End;
            }
            sampling.accept(token);
            let piece = writing.take(&self.loaded.model.vocab().token_to_piece(token, false, None));
            if !piece.is_empty() {
                pieces.blocking_send(Piece::Text(piece)).map_err(|_| ModelError::cancelled())?;
            }
            at = self.evaluate(&[token], pieces)?;
        };
        let rest = writing.rest();
        if !rest.is_empty() {
            let _ = pieces.blocking_send(Piece::Text(rest));
        }
        let usage = Usage {
            input_tokens: prompt.len() as u64,
            output_tokens: said as u64,
            cached_tokens: kept as u64,
            ..Usage::default()
        };
        Ok(ReplyEnd { stop, usage })
    }

    fn tokens(&self, asked: &LocalRequest) -> Result<(Vec<LlamaToken>, bool), ModelError> {
        let wrong = |message| ModelError::new(ErrorKind::Invalid, message);
        let ChatPrompt { text, thinks } = self.loaded.template.prompt(asked).map_err(wrong)?;
        let vocab = self.loaded.model.vocab();
        // Do not add the BOS token if the template already did.
        let marked = vocab.should_add_bos() && self.loaded.template.inserts_bos(&text);
        let tokens = vocab.tokenize(text.as_bytes(), !marked, true);
        if tokens.is_empty() { Err(wrong("the request is empty".to_owned())) } else { Ok((tokens, thinks)) }
    }

    /// Drops the part of the context that the prompt does not share. Returns the number of prompt tokens that
    /// need no evaluation; never all of them, because the logits of the last token are needed.
    fn keep_common(&mut self, prompt: &[LlamaToken]) -> usize {
        let common = self.evaluated.iter().zip(prompt).take_while(|(one, other)| one == other).count();
        let mut kept = common.min(prompt.len() - 1);
        let from = u32::try_from(kept).unwrap_or(u32::MAX);
        if self.context.kv_cache_seq_rm(0, Some(from), None).is_err() {
            // Recurrent models cannot drop a part of their state.
            self.context.clear_kv_cache();
            kept = 0;
        }
        self.evaluated.truncate(kept);
        kept
    }

    fn evaluate_prompt(
        &mut self,
        prompt: &[LlamaToken],
        kept: usize,
        pieces: &Sender<Piece>,
    ) -> Result<i32, ModelError> {
        let mut at = 0;
        for part in prompt[kept..].chunks(PART) {
            at = self.evaluate(part, pieces)?;
        }
        Ok(at)
    }

    /// Evaluates tokens; returns the index at which the logits of the last one are available.
    fn evaluate(&mut self, tokens: &[LlamaToken], pieces: &Sender<Piece>) -> Result<i32, ModelError> {
        if pieces.is_closed() {
            return Err(ModelError::cancelled());
        }
        let failed = |error: String| ModelError::new(ErrorKind::Server, format!("llama.cpp failed: {error}"));
        let mut batch = LlamaBatch::new(tokens.len(), 1);
        let last = tokens.len() - 1;
        for (at, token) in tokens.iter().enumerate() {
            let position = i32::try_from(self.evaluated.len() + at).unwrap_or(i32::MAX);
            batch.add(*token, position, &[0], at == last).map_err(|error| failed(error.to_string()))?;
        }
        if let Err(error) = self.context.decode(&mut batch) {
            // The content of the context is now unknown.
            self.context.clear_kv_cache();
            self.evaluated.clear();
            return Err(failed(error.to_string()));
        }
        self.evaluated.extend_from_slice(tokens);
        Ok(i32::try_from(last).unwrap_or_default())
    }
}

/// Assembles token bytes into text: a character may be split across tokens.
#[derive(Default)]
struct TokenDecoder {
    open: Vec<u8>,
}

impl TokenDecoder {
    fn take(&mut self, bytes: &[u8]) -> String {
        self.open.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.open) {
            Ok(text) => text.len(),
            // Only wait for more bytes if the end of a character is missing.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => self.open.len(),
        };
        let whole: Vec<u8> = self.open.drain(..whole).collect();
        String::from_utf8_lossy(&whole).into_owned()
    }

    fn rest(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.open)).into_owned()
    }
}
