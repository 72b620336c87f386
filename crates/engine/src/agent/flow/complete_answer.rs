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
        self.all_files(answer, |current, path, text| current.is_whole(path, text) && current.is_changed(text))
    }

    /// Whether the text has every file from beginning to end, changed or not.
    pub(crate) fn is_repeated_in(&self, answer: &str) -> bool {
        self.all_files(answer, CurrentFile::is_whole)
    }

    /// Whether a model that has written every file goes on with a block for a test.
    pub(crate) fn goes_on_with_tests(&self, rest: &str) -> bool {
        let opens_block =
            rest.trim_end().rsplit('\n').next().is_some_and(|line| line.trim().starts_with("```"));
        let words = || rest.split(|c: char| !c.is_alphanumeric() && !"._-/".contains(c));
        let names_test = || {
            words().map(|word| word.trim_end_matches('.')).any(|word| is_source(word) && super::is_test(word))
        };
        let names_file = || words().any(|word| self.paths.iter().any(|path| path == word));
        opens_block && names_test() && !names_file()
    }

    fn all_files(&self, answer: &str, is_there: impl Fn(&CurrentFile, &str, &str) -> bool) -> bool {
        let Some(found) = finished_files(answer, &self.paths) else { return false };
        self.paths.iter().zip(&self.files).all(|(path, current)| {
            let version = found.iter().find(|(known, _)| known == path);
            version.is_some_and(|(_, text)| is_there(current, path, text))
        })
    }
}

impl CurrentFile {
    /// Whether a text is the whole file, and not an excerpt.
    fn is_whole(&self, path: &str, text: &str) -> bool {
        let defined = memory::definitions(path, text);
        let has_all = self.definitions.iter().all(|name| defined.contains(name));
        has_all && (!self.definitions.is_empty() || text.lines().count() * 2 >= self.text.lines().count())
    }

    fn is_changed(&self, text: &str) -> bool {
        text.trim() != self.text.trim()
    }
}

#[cfg(test)]
mod tests;
