//! All sections of a bound prompt, the hidden ones too: what a person looks at to see what a model sees and what it
//! would cost to show more.

use std::collections::BTreeSet;

use super::render::{Bound, RenderProblem};
use super::section::Shown;

/// What a model sees of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionState {
    /// All of it.
    Open,
    /// Its summary.
    Closed,
    /// Nothing: a closed section is around it.
    Behind,
}

/// One section of an outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlined {
    /// Its path.
    pub path: String,
    /// Its number.
    pub number: String,
    /// Its title.
    pub title: String,
    /// How many sections are around it.
    pub depth: usize,
    /// What a model sees of it.
    pub state: SectionState,
    /// What is shown of it: nothing for one behind another.
    pub shown: String,
    /// What opening it would show in that place: of a closed one all that stands inside it too.
    pub whole: String,
}

impl Bound<'_> {
    /// All sections that are enabled, in order; `open` holds the paths of those that were opened.
    pub fn outline(&self, open: &BTreeSet<String>) -> Result<Vec<Outlined>, RenderProblem> {
        let (mut outline, mut at, mut hidden_before) = (Vec::new(), 0, 0);
        while let Some(node) = self.nodes.get(at) {
            if !self.is_enabled(node) {
                at += 1 + node.inside;
                continue;
            }
            let state = match self.shown(node, open) {
                _ if at < hidden_before => SectionState::Behind,
                Shown::Full => SectionState::Open,
                Shown::Summary => SectionState::Closed,
            };
            let (shown, whole) = match state {
                SectionState::Open => {
                    let text = self.section(node, Shown::Full, at)?;
                    (text.clone(), text)
                }
                SectionState::Closed => {
                    hidden_before = at + 1 + node.inside;
                    (self.section(node, Shown::Summary, at)?, self.read_section(node.path.as_str())?)
                }
                SectionState::Behind => (String::new(), self.section(node, Shown::Full, at)?),
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
