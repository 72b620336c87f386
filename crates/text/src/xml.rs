//! XML with positions, for files that people write by hand.
//!
//! [`decode`] turns bytes into text, [`read`] turns text into a [`Document`]. A mistake does not end the reading:
//! every one is reported with its place, and what can be understood of the rest is. What elements mean is the
//! business of those who ask. There are no DTDs and no entities beyond the five that need none, so a text never grows.

mod decode;
mod read;
mod tree;

pub use decode::{decode, stops_being_text};
pub use read::{LARGEST, read};
pub use tree::{Attribute, Content, Document, Element, ElementId};
