//! XML with positions, for files written by hand.
//!
//! [`decode()`] turns bytes into text, [`read()`] turns text into a [`XmlDocument`]. Errors do not stop the reader:
//! each one is reported with its position and reading continues. What the elements mean is up to the caller.
//! DTDs and entities other than the five predefined ones are not supported, so entity expansion can never
//! grow a text.

mod decode;
mod read;
mod tree;

pub use decode::{decode, stops_being_text};
pub use read::{LARGEST, read};
pub use tree::{ElementId, XmlAttribute, XmlContent, XmlDocument, XmlElement};
