//! Which reply a request gets: in order, by match, and after the end.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Arrived, Message, Prepared, Reply};

pub(super) type Choose = Box<dyn FnMut(&Arrived) -> Arc<Prepared> + Send>;

/// Replies in the order they are given out.
#[derive(Default)]
pub struct Script {
    ordered: VecDeque<Arc<Prepared>>,
    matched: Vec<(String, Arc<Prepared>)>,
    afterwards: Option<Arc<Prepared>>,
}

impl Script {
    /// An empty script: every request is refused with a message that says so.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next reply.
    #[must_use]
    pub fn then(mut self, reply: impl Into<Reply>) -> Self {
        self.ordered.push_back(reply.into().prepare());
        self
    }

    /// A reply for the first request whose last message contains the text; used once, tried before the order.
    #[must_use]
    pub fn when(mut self, text: &str, reply: impl Into<Reply>) -> Self {
        self.matched.push((text.to_owned(), reply.into().prepare()));
        self
    }

    /// What every further request gets.
    #[must_use]
    pub fn afterwards(mut self, reply: impl Into<Reply>) -> Self {
        self.afterwards = Some(reply.into().prepare());
        self
    }

    pub(super) fn into_choice(mut self) -> Choose {
        let end = Reply::error(400, "the script of the server is at its end").prepare();
        Box::new(move |arrived| {
            // Reading a long body costs time that a bench would see: only scripts with matches pay for it.
            let last = if self.matched.is_empty() { None } else { arrived.messages().pop() };
            let last = last.unwrap_or_default();
            if let Some(at) = self.matched.iter().position(|(text, _)| last.contains(text)) {
                return self.matched.remove(at).1;
            }
            let next = self.ordered.pop_front().or_else(|| self.afterwards.clone());
            next.unwrap_or_else(|| Arc::clone(&end))
        })
    }
}

impl<R: Into<Reply>> FromIterator<R> for Script {
    fn from_iter<I: IntoIterator<Item = R>>(replies: I) -> Self {
        replies.into_iter().fold(Self::new(), Self::then)
    }
}

impl<R: Into<Reply>, const N: usize> From<[R; N]> for Script {
    fn from(replies: [R; N]) -> Self {
        replies.into_iter().collect()
    }
}

impl From<Vec<Reply>> for Script {
    fn from(replies: Vec<Reply>) -> Self {
        replies.into_iter().collect()
    }
}

impl From<Message> for Script {
    fn from(message: Message) -> Self {
        Self::new().then(message)
    }
}

/// What a path gets that is not a model's: servers differ in what they offer, and this one offers nothing else.
pub(super) fn unknown_path(arrived: &Arrived) -> Arc<Prepared> {
    Reply::error(404, &format!("no {} {} here", arrived.method, arrived.path)).prepare()
}
