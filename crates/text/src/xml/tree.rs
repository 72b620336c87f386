//! What was read: elements in the order of their beginnings, each with its attributes and what stands inside it.

use crate::Span;

/// The place of an element in its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ElementId(pub(super) u32);

/// A whole text as elements.
#[derive(Clone, Debug, Default)]
pub struct Document {
    pub(super) elements: Vec<Element>,
}

/// One element.
#[derive(Clone, Debug)]
pub struct Element {
    /// Its name, with a prefix if it has one.
    pub name: String,
    /// Where the name stands in the opening tag.
    pub name_span: Span,
    /// The whole opening tag.
    pub tag_span: Span,
    /// In the order written.
    pub attributes: Vec<Attribute>,
    /// In the order written.
    pub content: Vec<Content>,
}

/// One attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name, with a prefix if it has one.
    pub name: String,
    /// Where the name stands.
    pub name_span: Span,
    /// Its value, with references resolved and white space as spaces.
    pub value: String,
    /// Where the value stands, without its quotes.
    pub value_span: Span,
}

/// What stands inside an element.
#[derive(Clone, Debug)]
pub enum Content {
    /// Text, with references resolved and line ends as `\n`; neighbours are put together.
    Text {
        /// The text.
        text: String,
        /// From its first to its last character.
        span: Span,
    },
    /// An element.
    Element(ElementId),
}

impl Document {
    /// The outermost element, if there is one.
    pub fn root(&self) -> Option<ElementId> {
        (!self.elements.is_empty()).then_some(ElementId(0))
    }

    /// The element at this place.
    pub fn element(&self, id: ElementId) -> &Element {
        &self.elements[id.0 as usize]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The elements directly inside.
    pub fn children(&self, id: ElementId) -> impl Iterator<Item = (ElementId, &Element)> {
        self.element(id).content.iter().filter_map(|content| match content {
            Content::Element(child) => Some((*child, self.element(*child))),
            Content::Text { .. } => None,
        })
    }

    /// The text directly inside, all pieces together.
    pub fn text(&self, id: ElementId) -> String {
        self.element(id)
            .content
            .iter()
            .filter_map(|content| match content {
                Content::Text { text, .. } => Some(text.as_str()),
                Content::Element(_) => None,
            })
            .collect()
    }
}

impl Element {
    /// The attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// From the first to the last character of text directly inside, or the opening tag where there is none.
    pub fn text_span(&self) -> Span {
        let spans = self.content.iter().filter_map(|content| match content {
            Content::Text { text, span } if !text.trim().is_empty() => Some(*span),
            _ => None,
        });
        spans.reduce(Span::to).unwrap_or(self.tag_span)
    }
}
