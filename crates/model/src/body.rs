//! A request body as a list of shared chunks. The HTTP client sends them in sequence without joining them;
//! the length is known, so the request has a `Content-Length`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The chunks of one body, in order.
#[derive(Clone, Debug, Default)]
pub struct BodyChunks {
    chunks: VecDeque<Bytes>,
    len: usize,
}

impl BodyChunks {
    /// Creates an empty body with capacity for `chunks` chunks.
    pub(crate) fn with_room(chunks: usize) -> Self {
        BodyChunks { chunks: VecDeque::with_capacity(chunks), len: 0 }
    }

    pub(crate) fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.len += chunk.len();
            self.chunks.push_back(chunk);
        }
    }

    /// Total length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the body is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The chunks, in order.
    pub fn chunks(&self) -> impl ExactSizeIterator<Item = &Bytes> {
        self.chunks.iter()
    }

    /// All chunks joined, for tests and for displaying a request.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut joined = Vec::with_capacity(self.len);
        for chunk in &self.chunks {
            joined.extend_from_slice(chunk);
        }
        joined
    }
}

impl Body for BodyChunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.chunks.pop_front();
        if let Some(chunk) = &next {
            self.len -= chunk.len();
        }
        Poll::Ready(next.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len as u64)
    }
}
