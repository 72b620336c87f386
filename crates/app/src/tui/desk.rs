//! Where questions of a run wait for the person at the terminal. The driver of the terminal takes them from here.

use fusee_engine::approval::{Answer, Approver, Question};
use fusee_engine::journal::BoxFuture;
use tokio::sync::{mpsc, oneshot};

/// Questions that wait; a run asks one at a time.
const WAITING: usize = 8;

/// A question and where its answer goes.
pub(crate) enum Waiting {
    /// Whether a call may run.
    Approval(Question, oneshot::Sender<Answer>),
    /// Something to be said in words.
    Words(Wanted, oneshot::Sender<String>),
}

/// What words are wanted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// They answer this question of the model.
    Answer(String),
    /// A turn was stopped; they say what is to happen now, and none let it go on.
    WhatNow,
}

/// The side of the run.
pub(crate) struct Desk(mpsc::Sender<Waiting>);

impl Desk {
    /// A desk and what is laid on it.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Waiting>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(sender), receiver)
    }

    async fn words(&self, wanted: Wanted) -> Option<String> {
        let (sender, words) = oneshot::channel();
        self.0.send(Waiting::Words(wanted, sender)).await.ok()?;
        words.await.ok()
    }
}

impl Approver for Desk {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async {
            let (sender, answer) = oneshot::channel();
            let gone = || Answer::no("nobody is there to approve it");
            if self.0.send(Waiting::Approval(question.clone(), sender)).await.is_err() {
                return gone();
            }
            answer.await.unwrap_or_else(|_| gone())
        })
    }

    fn ask_user<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.words(Wanted::Answer(question.to_owned())))
    }

    fn after_stop<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.words(Wanted::WhatNow))
    }
}
