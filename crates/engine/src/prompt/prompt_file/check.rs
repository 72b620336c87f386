//! Diagnostics with positions for prompt files, for `fusee check`. The parent module reports them without
//! positions.

use std::collections::HashMap;
use std::ops::Range;

use fusee_text::{Diagnostic, Diagnostics, Source, Span};

use super::{FileProblem, PromptFile, PromptFileText};
use crate::prompt::builder::PromptProblem;

impl PromptFile {
    /// Returns all problems of a prompt file.
    pub fn check(source: &Source) -> Diagnostics {
        let mut problems = Diagnostics::new();
        match (PromptFileText::read_placed(source.text()), Self::parse(source.text())) {
            (Err((message, place)), _) => {
                let span = place.map_or_else(Span::default, Span::from);
                problems.push(Diagnostic::error("invalid-prompt-file", source, span, message));
            }
            (Ok(_), Err(FileProblem::Content(found))) => place(&found, source, &mut problems),
            (Ok(_), Ok(_) | Err(FileProblem::Syntax(_))) => {}
        }
        problems
    }
}

/// Places each problem at its section's key; a repeated problem is placed at the next occurrence of the key.
fn place(found: &[PromptProblem], source: &Source, problems: &mut Diagnostics) {
    let mut seen: HashMap<(&str, &str), usize> = HashMap::new();
    for problem in found {
        let at = problem.at.as_deref().unwrap_or_default();
        let before = seen.entry((at, problem.code)).or_default();
        let nth = *before + usize::from(problem.code.starts_with("duplicate"));
        *before += 1;
        // The path of a section ends with its key, and an invalid key may itself contain dots.
        let mut keys = std::iter::successors(Some(at), |path| path.split_once('.').map(|(_, rest)| rest));
        let span =
            keys.find_map(|key| quoted(source.text(), key, nth)).map_or_else(Span::default, Span::from);
        problems.push(Diagnostic::error(problem.code, source, span, problem.to_string()));
    }
}

/// Returns the `nth` (or last) place where a section gets this key, or a kind that is its key. Keys are compared
/// in lower case.
fn quoted(text: &str, key: &str, nth: usize) -> Option<Range<usize>> {
    let (text, key) = (text.to_ascii_lowercase(), key.to_ascii_lowercase());
    let places = text.match_indices(&key).filter_map(|(start, _)| {
        let end = start + key.len();
        let before = text[..start].strip_suffix(['"', '\''])?.trim_end().strip_suffix(['=', ':'])?;
        let field = before.trim_end().trim_end_matches('"');
        let is_key = field.ends_with("key") || field.ends_with("kind");
        (is_key && text[end..].starts_with(['"', '\''])).then_some(start..end)
    });
    (!key.is_empty()).then(|| places.take(nth + 1).last()).flatten()
}
