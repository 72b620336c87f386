//! The document tree: elements in document order, each with its attributes and content.

use crate::Span;

/// Index of an element in its [`XmlDocument`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ElementId(pub(super) u32);

/// A parsed XML document.
#[derive(Clone, Debug, Default)]
pub struct XmlDocument {
    pub(super) elements: Vec<XmlElement>,
}

/// One tag with its attributes and children, and where each is in the source.
#[derive(Clone, Debug)]
pub struct XmlElement {
    /// Name, including the namespace prefix if there is one.
    pub name: String,
    /// Position of the name in the start tag.
    pub name_span: Span,
    /// Position of the start tag.
    pub tag_span: Span,
    /// Attributes in document order.
    pub attributes: Vec<XmlAttribute>,
    /// Text and child elements in document order.
    pub content: Vec<XmlContent>,
}

/// An attribute of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlAttribute {
    /// Name, including the namespace prefix if there is one.
    pub name: String,
    /// Position of the name.
    pub name_span: Span,
    /// Value with references resolved and newlines and tabs replaced by spaces.
    pub value: String,
    /// Position of the value without its quotes.
    pub value_span: Span,
}

/// Content of an element.
#[derive(Clone, Debug)]
pub enum XmlContent {
    /// Text with references resolved and line endings as `\n`; adjacent pieces are merged.
    Text {
        /// The resolved text.
        text: String,
        /// Span from the first to the last character.
        span: Span,
    },
    /// A child element.
    Element(ElementId),
}

impl XmlDocument {
    /// The root element, if there is one.
    pub fn root(&self) -> Option<ElementId> {
        (!self.elements.is_empty()).then_some(ElementId(0))
    }

    /// The element with this id, which must come from this document.
    pub fn element(&self, id: ElementId) -> &XmlElement {
        &self.elements[id.0 as usize]
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether the document has no elements.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The direct child elements.
    pub fn children(&self, id: ElementId) -> impl Iterator<Item = (ElementId, &XmlElement)> {
        self.element(id).content.iter().filter_map(|content| match content {
            XmlContent::Element(child) => Some((*child, self.element(*child))),
            XmlContent::Text { .. } => None,
        })
    }

    /// The concatenated text directly inside the element, without that of child elements.
    pub fn text(&self, id: ElementId) -> String {
        self.element(id)
            .content
            .iter()
            .filter_map(|content| match content {
                XmlContent::Text { text, .. } => Some(text.as_str()),
                XmlContent::Element(_) => None,
            })
            .collect()
    }
}

impl XmlElement {
    /// Looks up an attribute by name.
    pub fn attribute(&self, name: &str) -> Option<&XmlAttribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    /// Span from the first to the last non-blank text directly inside, or the start tag if there is none.
    pub fn text_span(&self) -> Span {
        let spans = self.content.iter().filter_map(|content| match content {
            XmlContent::Text { text, span } if !text.trim().is_empty() => Some(*span),
            _ => None,
        });
        spans.reduce(Span::to).unwrap_or(self.tag_span)
    }
}
