//! Where questions of a run wait for the person at the terminal. The driver of the terminal takes them from here.

use fusee_engine::approval::{Answer, Approver, Question};
use fusee_engine::journal::BoxFuture;
use tokio::sync::{mpsc, oneshot};

/// Questions that wait; a run asks one at a time.
const WAITING: usize = 8;

/// A question and where its answer goes.
pub(crate) type Waiting = (Question, oneshot::Sender<Answer>);

/// The side of the run.
pub(crate) struct Desk(mpsc::Sender<Waiting>);

impl Desk {
    /// A desk and what is laid on it.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Waiting>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(sender), receiver)
    }
}

impl Approver for Desk {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async {
            let (sender, answer) = oneshot::channel();
            let gone = || Answer::no("nobody is there to approve it");
            if self.0.send((question.clone(), sender)).await.is_err() {
                return gone();
            }
            answer.await.unwrap_or_else(|_| gone())
        })
    }
}
