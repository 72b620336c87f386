//! Opening closed sections: validates `open_sections` calls and builds the instructions for the next cycle.

use std::collections::{BTreeMap, BTreeSet};

use super::render::BoundPrompt;
use super::section::SectionDisplay;
use super::section_key::normalise_path;

/// Request of the model to open sections: apply the overrides, then bind and render again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VisibilityExpansionRequired {
    /// Visibility to apply, by path: the requested sections and their closed ancestors in full.
    pub requested_overrides: BTreeMap<String, SectionDisplay>,
    /// Reason given by the model.
    pub reason: String,
    /// Requested keys that were closed, without duplicates, in the order of the request.
    pub section_keys: Vec<String>,
    /// Instructions for the next cycle.
    pub expansion_instructions: String,
}

impl VisibilityExpansionRequired {
    /// The sections that are open once the overrides are applied.
    pub fn applied_to(&self, open: &BTreeSet<String>) -> BTreeSet<String> {
        let mut open = open.clone();
        for (path, shown) in &self.requested_overrides {
            match shown {
                SectionDisplay::Full => open.insert(path.clone()),
                SectionDisplay::Summary => open.remove(path),
            };
        }
        open
    }
}

/// An `open_sections` call that opens nothing. It becomes a tool result, and the run continues.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OpenProblem {
    /// Stable code of the problem kind.
    pub code: &'static str,
    /// Description of the problem, for the model.
    pub message: String,
    /// The affected key, if any.
    pub section_path: Option<String>,
}

/// Validates an `open_sections` call.
pub fn open_sections(
    bound: &BoundPrompt<'_>,
    open: &BTreeSet<String>,
    section_keys: &[String],
    reason: &str,
) -> Result<VisibilityExpansionRequired, OpenProblem> {
    let problem = |code, path: Option<&str>, message| OpenProblem {
        code,
        message,
        section_path: path.map(str::to_owned),
    };
    if section_keys.iter().all(|key| key.trim().is_empty()) {
        return Err(problem(
            "no_keys",
            None,
            "`section_keys` is empty: name the sections to open".to_owned(),
        ));
    }
    let mut overrides = BTreeMap::new();
    let mut opened: Vec<String> = Vec::new();
    for key in section_keys {
        let path = normalise_path(key);
        let node = bound.enabled(bound.nodes).find(|node| node.path.as_str() == path);
        let Some(node) = node else {
            let known = bound.enabled(bound.nodes).map(|node| node.path.as_str());
            let near = fusee_text::suggest::nearest(&path, known);
            let hint = if near.is_empty() {
                String::new()
            } else {
                format!(" Did you mean `{}`?", near.join("` or `"))
            };
            return Err(problem(
                "unknown_section",
                Some(&path),
                format!("There is no section `{path}`.{hint}"),
            ));
        };
        let closed_here = bound.shown(node, open) == SectionDisplay::Summary;
        let around: Vec<_> = bound
            .nodes
            .iter()
            .filter(|other| node.path.ancestors().any(|ancestor| ancestor == other.path.as_str()))
            .filter(|other| bound.shown(other, open) == SectionDisplay::Summary)
            .map(|other| other.path.to_string())
            .collect();
        if !closed_here && around.is_empty() {
            continue;
        }
        overrides.extend(around.into_iter().map(|path| (path, SectionDisplay::Full)));
        overrides.insert(path.clone(), SectionDisplay::Full);
        if !opened.contains(&path) {
            opened.push(path);
        }
    }
    if opened.is_empty() {
        let keys = section_keys
            .iter()
            .map(|key| format!("`{}`", normalise_path(key)))
            .collect::<Vec<_>>()
            .join(", ");
        let path = section_keys.first().map(|key| normalise_path(key));
        return Err(problem(
            "already_open",
            path.as_deref(),
            format!("Nothing to open: {keys} is shown in full already."),
        ));
    }
    let expansion_instructions = build_expansion_instructions(&opened, reason);
    let (reason, section_keys) = (reason.to_owned(), opened);
    Ok(VisibilityExpansionRequired {
        requested_overrides: overrides,
        reason,
        section_keys,
        expansion_instructions,
    })
}

/// Builds the guidance after an expansion. The reason always ends in exactly one full stop.
pub fn build_expansion_instructions(section_keys: &[String], reason: &str) -> String {
    let mut seen = BTreeSet::new();
    let keys: Vec<_> =
        section_keys.iter().filter(|key| seen.insert(*key)).map(|key| format!("`{key}`")).collect();
    let reason = super::placeholder::trim(reason).trim_end_matches('.').trim_end();
    format!(
        "Sections expanded: {}. Reason: {reason}. Continue with your task using the newly visible content.",
        keys.join(", ")
    )
}
