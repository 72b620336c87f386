//! Outline of a bound prompt, including hidden sections: shows the user what the model sees, and what it
//! would cost to show more.

use std::collections::BTreeSet;

use super::render::{BoundPrompt, RenderProblem};
use super::section::SectionDisplay;

/// How much of a section the model sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionState {
    /// The full text.
    Open,
    /// Only the summary.
    Closed,
    /// Nothing, because an enclosing section is closed.
    Behind,
}

/// One section of an outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlined {
    /// Path of the section.
    pub path: String,
    /// Section number.
    pub number: String,
    /// Section title.
    pub title: String,
    /// Number of enclosing sections.
    pub depth: usize,
    /// How much of it the model sees.
    pub state: SectionState,
    /// The visible text; empty if an enclosing section is closed.
    pub shown: String,
    /// The text that opening would show; for a closed section this includes its descendants.
    pub whole: String,
}

impl BoundPrompt<'_> {
    /// Returns all enabled sections in order; `open` holds the paths of opened sections.
    pub fn outline(&self, open: &BTreeSet<String>) -> Result<Vec<Outlined>, RenderProblem> {
        let (mut outline, mut at, mut hidden_before) = (Vec::new(), 0, 0);
        while let Some(node) = self.nodes.get(at) {
            if !self.is_enabled(node) {
                at += 1 + node.inside;
                continue;
            }
            let state = match self.shown(node, open) {
                _ if at < hidden_before => SectionState::Behind,
                SectionDisplay::Full => SectionState::Open,
                SectionDisplay::Summary => SectionState::Closed,
            };
            let (shown, whole) = match state {
                SectionState::Open => {
                    let text = self.section(node, SectionDisplay::Full, at)?;
                    (text.clone(), text)
                }
                SectionState::Closed => {
                    hidden_before = at + 1 + node.inside;
                    (self.section(node, SectionDisplay::Summary, at)?, self.read_section(node.path.as_str())?)
                }
                SectionState::Behind => (String::new(), self.section(node, SectionDisplay::Full, at)?),
            };
            outline.push(Outlined {
                path: node.path.to_string(),
                number: node.number.clone(),
                title: node.title.clone(),
                depth: node.depth,
                state,
                shown,
                whole,
            });
            at += 1;
        }
        Ok(outline)
    }
}
