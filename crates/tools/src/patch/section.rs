//! What a patch says, whatever format it was written in: sections, one for each file it touches, made of hunks.

/// What is to become of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// As written.
    pub(super) path: String,
    pub(super) action: Action,
    /// Line of the patch it begins at, counted from 1.
    pub(super) at: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A new file.
    Add { lines: Vec<String>, final_newline: bool, mode: Option<u32> },
    /// No file any more. Hunks, if there are any, say what it must have held.
    Delete { hunks: Vec<Hunk> },
    /// Other content, another name, or both.
    Update { move_to: Option<String>, hunks: Vec<Hunk> },
}

/// Lines that are to be found, and what is to become of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// Lines that stand somewhere before it, each after the one before.
    pub(super) anchors: Vec<String>,
    /// Where the patch says it begins, counted from 0. Models count badly: a hint, nothing more.
    pub(super) hint: Option<usize>,
    pub(super) lines: Vec<HunkLine>,
    /// Whether it is said to reach to the end of the file.
    pub(super) at_end: bool,
    /// Empty lines at its end that may be part of it or only of the patch's layout.
    pub(super) loose_blanks: usize,
    /// What is said about the newline at the end of the file, before and after.
    pub(super) old_final_newline: Option<bool>,
    pub(super) new_final_newline: Option<bool>,
    /// Line of the patch it begins at, counted from 1.
    pub(super) at: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HunkLine {
    Keep(String),
    Remove(String),
    Add(String),
}

impl Hunk {
    /// The lines that must be in the file.
    pub(super) fn old_lines(&self) -> Vec<&str> {
        self.lines
            .iter()
            .filter_map(|line| match line {
                HunkLine::Keep(text) | HunkLine::Remove(text) => Some(text.as_str()),
                HunkLine::Add(_) => None,
            })
            .collect()
    }

    pub(super) fn changes_something(&self) -> bool {
        self.lines.iter().any(|line| !matches!(line, HunkLine::Keep(_)))
    }

    /// The same without the empty lines that may be layout.
    pub(super) fn without_loose_blanks(&self) -> Option<Self> {
        if self.loose_blanks == 0 {
            return None;
        }
        let mut hunk = self.clone();
        hunk.lines.truncate(self.lines.len() - self.loose_blanks);
        hunk.loose_blanks = 0;
        Some(hunk)
    }
}
