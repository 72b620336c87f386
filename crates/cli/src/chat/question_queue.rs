//! Queue of a run's questions for the user. The event loop in `terminal` takes them from here.

use fusee::engine::approval::{ApprovalAnswer, ApprovalQuestion, Approver};
use fusee::engine::journal::BoxFuture;
use tokio::sync::{mpsc, oneshot};

/// Capacity of the queue; a run asks one question at a time.
const QUEUE_CAPACITY: usize = 8;

/// A question and the channel for its answer.
pub(crate) enum QueuedQuestion {
    /// Approval of a call.
    Approval(ApprovalQuestion, oneshot::Sender<ApprovalAnswer>),
    /// A free-text answer.
    FreeText(FreeTextPurpose, oneshot::Sender<String>),
}

/// Purpose of a free-text answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FreeTextPurpose {
    /// A question asked by the model.
    Answer(String),
    /// A turn was stopped: the text tells the model how to proceed; an empty text lets it continue.
    AfterStop,
}

/// The run's end of the queue.
pub(crate) struct QuestionQueue(mpsc::Sender<QueuedQuestion>);

impl QuestionQueue {
    /// Creates a queue and its receiving end.
    pub(crate) fn new() -> (Self, mpsc::Receiver<QueuedQuestion>) {
        let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
        (Self(sender), receiver)
    }

    async fn words(&self, purpose: FreeTextPurpose) -> Option<String> {
        let (sender, words) = oneshot::channel();
        self.0.send(QueuedQuestion::FreeText(purpose, sender)).await.ok()?;
        words.await.ok()
    }
}

impl Approver for QuestionQueue {
    fn ask<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async {
            let (sender, answer) = oneshot::channel();
            let gone = || ApprovalAnswer::no("nobody is there to approve it");
            if self.0.send(QueuedQuestion::Approval(question.clone(), sender)).await.is_err() {
                return gone();
            }
            answer.await.unwrap_or_else(|_| gone())
        })
    }

    fn ask_user<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.words(FreeTextPurpose::Answer(question.to_owned())))
    }

    fn after_stop<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.words(FreeTextPurpose::AfterStop))
    }
}
