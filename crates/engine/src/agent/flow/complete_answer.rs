//! Decides, while an answer of `direct` is streamed, whether it already has every file that it is about. Small models
//! go on to explain the code, or copy the tests, which costs more time than the answer; `attempt.rs` stops them.

use super::answer_edits::finished_files;
use super::auto::asks_for_tests;
use super::preload::is_source;
use super::settings::FlowEditFormat;
use crate::memory;

/// Words of requests whose answers may have more files than those that exist.
const MORE_FILES: &str = "create extract module modules move separate split";

/// What an answer has to contain to be complete.
#[derive(Debug)]
pub(crate) struct CompleteAnswer {
    paths: Vec<String>,
    files: Vec<CurrentFile>,
}

/// A file to change, as the model was shown it.
#[derive(Debug)]
struct CurrentFile {
    text: String,
    definitions: Vec<String>,
}

impl CompleteAnswer {
    /// The answer to a request that changes these files. `None` if it may need others too.
    pub(crate) fn new(
        request: &str,
        format: FlowEditFormat,
        paths: &[String],
        texts: &[String],
    ) -> Option<Self> {
        let words = || request.split(|c: char| c.is_whitespace() || "`'\"(),:;".contains(c));
        let names_other = words().any(|word| {
            let word = word.trim_end_matches('.');
            let is_target = || paths.iter().any(|path| path.ends_with(word));
            is_source(word) && !super::is_test(word) && !is_target()
        });
        let may_add = words().any(|word| MORE_FILES.split(' ').any(|known| known.eq_ignore_ascii_case(word)));
        let is_known = format == FlowEditFormat::Whole && !paths.is_empty() && paths.len() == texts.len();
        if !is_known || names_other || may_add || asks_for_tests(request) {
            return None;
        }
        let current = |(path, text): (&String, &String)| CurrentFile {
            text: text.clone(),
            definitions: memory::definitions(path, text),
        };
        Some(Self { paths: paths.to_vec(), files: paths.iter().zip(texts).map(current).collect() })
    }

    /// Whether the text, which ends with a whole line, has a new version of every file.
    pub(crate) fn is_in(&self, answer: &str) -> bool {
        let Some(found) = finished_files(answer, &self.paths) else { return false };
        self.paths.iter().zip(&self.files).all(|(path, current)| {
            let version = found.iter().find(|(known, _)| known == path);
            version.is_some_and(|(_, text)| current.is_replaced_by(path, text))
        })
    }
}

impl CurrentFile {
    /// Whether a text is a new version of the whole file, and not an excerpt or the file as it is.
    fn is_replaced_by(&self, path: &str, text: &str) -> bool {
        let defined = memory::definitions(path, text);
        let has_all = self.definitions.iter().all(|name| defined.contains(name));
        let is_long = !self.definitions.is_empty() || text.lines().count() * 2 >= self.text.lines().count();
        has_all && is_long && text.trim() != self.text.trim()
    }
}

#[cfg(test)]
mod tests;
