//! A byte range in a source. [`crate::Source`] turns it into lines and columns.

use std::ops::Range;

/// A half-open byte range. Eight bytes, because every node of every tree carries one; offsets past 4 GiB
/// saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The range from `start` up to, not including, `end`. An `end` before `start` gives an empty span at
    /// `start`.
    pub fn new(start: usize, end: usize) -> Self {
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        let start = clamp(start);
        Self { start, end: clamp(end).max(start) }
    }

    /// The empty span at `offset`.
    pub fn at(offset: usize) -> Self {
        Self::new(offset, offset)
    }

    /// Offset of the first byte.
    pub fn start(self) -> usize {
        self.start as usize
    }

    /// Offset after the last byte.
    pub fn end(self) -> usize {
        self.end as usize
    }

    /// Length in bytes.
    pub fn len(self) -> usize {
        self.end() - self.start()
    }

    /// Whether the span is zero bytes long.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The smallest span that covers both.
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Whether `offset` lies within the span.
    pub fn contains(self, offset: usize) -> bool {
        self.range().contains(&offset)
    }

    /// The span as a range of byte offsets.
    pub fn range(self) -> Range<usize> {
        self.start()..self.end()
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self::new(range.start, range.end)
    }
}
