//! Questions of a run that wait for the program: calls that need approval, and questions of the model.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};

use fusee_engine::approval::{ApprovalAnswer, ApprovalQuestion, Approver};
use fusee_engine::model::BoxFuture;
use tokio::sync::Notify;

/// Answers given through [`Run`](crate::Run). An answer may come before the question waits for it, because the
/// event that announces a question is emitted first.
#[derive(Default)]
pub(crate) struct PendingApprovals {
    answers: Mutex<Answers>,
    given: Notify,
}

#[derive(Default)]
struct Answers {
    /// Decisions by call id.
    calls: HashMap<String, ApprovalAnswer>,
    /// Replies to questions of the model, in order.
    replies: VecDeque<String>,
}

impl PendingApprovals {
    pub(crate) fn decide(&self, call_id: &str, answer: ApprovalAnswer) {
        self.lock().calls.insert(call_id.to_owned(), answer);
        self.given.notify_waiters();
    }

    pub(crate) fn reply(&self, text: String) {
        self.lock().replies.push_back(text);
        self.given.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock()
    }

    /// Waits until `take` finds its answer.
    async fn wait<T>(&self, mut take: impl FnMut(&mut Answers) -> Option<T>) -> T {
        loop {
            let mut given = std::pin::pin!(self.given.notified());
            given.as_mut().enable();
            if let Some(answer) = take(&mut self.lock()) {
                return answer;
            }
            given.await;
        }
    }
}

impl Approver for PendingApprovals {
    fn ask<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(self.wait(|answers| answers.calls.remove(&question.call_id)))
    }

    fn ask_user<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async { Some(self.wait(|answers| answers.replies.pop_front()).await) })
    }
}
