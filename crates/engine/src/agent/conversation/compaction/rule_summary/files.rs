//! File names in a summary: as many as fit, and the number of the others.

use std::collections::HashMap;

use super::line::squeezed;

/// Maximum bytes of a path; a longer one is truncated.
const PATH_BYTES: usize = 120;

/// Maximum number of named files per turn; the rest are counted.
const MAX_FILES: usize = 64;

const BETWEEN: &str = ", ";

/// Some files by name, and the number of further ones.
#[derive(Default)]
pub(super) struct FileNames {
    pub names: Vec<String>,
    pub more: u32,
}

impl FileNames {
    pub(super) fn new(names: Vec<String>) -> FileNames {
        let mut files = FileNames::default();
        files.add(names);
        files
    }

    pub(super) fn add(&mut self, names: Vec<String>) {
        for name in names {
            let name = squeezed(&name, PATH_BYTES);
            if self.names.len() == MAX_FILES {
                self.more = self.more.saturating_add(1);
            } else if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
    }

    /// Parses the output of [`list`].
    pub(super) fn read_back(text: &str) -> FileNames {
        let mut files = FileNames::default();
        for name in text.split(BETWEEN) {
            let more = name.strip_prefix('+').and_then(|rest| rest.strip_suffix(" more"));
            match more.and_then(|more| more.parse().ok()) {
                Some(more) => files.more = more,
                None => files.names.push(name.to_owned()),
            }
        }
        files
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX).saturating_add(self.more)
    }

    pub(super) fn list(&self, bytes: usize, entries: usize) -> Option<String> {
        list(self.names.iter().map(String::as_str).take(entries), self.count(), bytes)
    }
}

/// Lists the first of `count` files in about `bytes` bytes; `None` if there are no files.
pub(super) fn list<'a>(names: impl Iterator<Item = &'a str>, count: u32, bytes: usize) -> Option<String> {
    let mut text = String::new();
    let mut hidden = count;
    for name in names {
        if text.len() + name.len() + BETWEEN.len() > bytes {
            break;
        }
        if !text.is_empty() {
            text.push_str(BETWEEN);
        }
        text.push_str(name);
        hidden = hidden.saturating_sub(1);
    }
    if hidden > 0 {
        let between = if text.is_empty() { "" } else { BETWEEN };
        text.push_str(&format!("{between}+{hidden} more"));
    }
    (!text.is_empty()).then_some(text)
}

/// Index of the files named by each line.
#[derive(Default)]
pub(super) struct Mentions {
    /// Ordered by line.
    all: Vec<Mention>,
    /// For each file, the index of its last mention.
    last: HashMap<String, usize>,
    different: u32,
}

struct Mention {
    name: String,
    line: usize,
    /// The next line that names the same file.
    again: usize,
}

impl Mentions {
    /// Adds the files named by `line`, the newest line. Returns the number of distinct files so far.
    pub(super) fn add(&mut self, line: usize, files: FileNames) -> u32 {
        for name in files.names {
            let index = self.all.len();
            match self.last.get_mut(&name) {
                Some(last) => self.all[std::mem::replace(last, index)].again = line,
                None => {
                    self.last.insert(name.clone(), index);
                    self.different = self.different.saturating_add(1);
                }
            }
            self.all.push(Mention { name, line, again: usize::MAX });
        }
        self.different = self.different.saturating_add(files.more);
        self.different
    }

    /// The files named in the first `lines` lines, newest first, each once.
    pub(super) fn newest_first(&self, lines: usize) -> impl Iterator<Item = &str> {
        let end = self.all.partition_point(|mention| mention.line < lines);
        let last_of_its_file = move |mention: &&Mention| mention.again >= lines;
        self.all[..end].iter().rev().filter(last_of_its_file).map(|mention| mention.name.as_str())
    }
}
