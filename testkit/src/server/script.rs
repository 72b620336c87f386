//! Chooses the reply for a request: by match, in order, or the fallback.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Message, Prepared, ReceivedRequest, Reply};

pub(super) type Choose = Box<dyn FnMut(&ReceivedRequest) -> Arc<Prepared> + Send>;

/// Replies in the order in which they are sent.
#[derive(Default)]
pub struct Script {
    ordered: VecDeque<Arc<Prepared>>,
    matched: Vec<(String, Arc<Prepared>)>,
    then_always: Option<Arc<Prepared>>,
}

impl Script {
    /// Creates an empty script: every request gets an error that says so.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next reply.
    #[must_use]
    pub fn then(mut self, reply: impl Into<Reply>) -> Self {
        self.ordered.push_back(reply.into().prepare());
        self
    }

    /// Adds a reply for the first request whose last message contains the text. It is used once and precedes
    /// the order.
    #[must_use]
    pub fn when(mut self, text: &str, reply: impl Into<Reply>) -> Self {
        self.matched.push((text.to_owned(), reply.into().prepare()));
        self
    }

    /// Sets the reply for every further request.
    #[must_use]
    pub fn then_always(mut self, reply: impl Into<Reply>) -> Self {
        self.then_always = Some(reply.into().prepare());
        self
    }

    pub(super) fn into_choice(mut self) -> Choose {
        let end = Reply::error(400, "the script of the server is at its end").prepare();
        Box::new(move |arrived| {
            // Parsing a long body takes time that would show up in a bench, so only scripts with matches do
            // it.
            let last = if self.matched.is_empty() { None } else { arrived.messages().pop() };
            let last = last.unwrap_or_default();
            if let Some(at) = self.matched.iter().position(|(text, _)| last.contains(text)) {
                return self.matched.remove(at).1;
            }
            let next = self.ordered.pop_front().or_else(|| self.then_always.clone());
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

/// Reply for a path that is not a model endpoint: 404, as this server offers nothing else.
pub(super) fn unknown_path(arrived: &ReceivedRequest) -> Arc<Prepared> {
    Reply::error(404, &format!("no {} {} here", arrived.method, arrived.path)).prepare()
}
