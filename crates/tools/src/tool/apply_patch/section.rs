//! Format-independent representation of a patch: one section per file, made of hunks.

/// The changes to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileSection {
    /// Path as written in the patch.
    pub(super) path: String,
    pub(super) action: SectionAction,
    /// Line of the patch where the section starts, counted from 1.
    pub(super) at: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SectionAction {
    /// Creates a file.
    Add { lines: Vec<String>, final_newline: bool, mode: Option<u32> },
    /// Deletes a file. Hunks, if any, state the content it must have had.
    Delete { hunks: Vec<Hunk> },
    /// Changes the content, the name, or both.
    Update { move_to: Option<String>, hunks: Vec<Hunk> },
}

/// Lines to find, and the changes to make to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// Lines that occur before the hunk, in this order.
    pub(super) anchors: Vec<String>,
    /// Zero-based start line according to the patch. Only a hint, because models count badly.
    pub(super) hint: Option<usize>,
    pub(super) lines: Vec<HunkLine>,
    /// Whether the patch says that the hunk extends to the end of the file.
    pub(super) at_end: bool,
    /// Number of trailing empty lines that may be context or only layout of the patch.
    pub(super) loose_blanks: usize,
    /// Whether the file ends with a newline before and after, if the patch says so.
    pub(super) old_final_newline: Option<bool>,
    pub(super) new_final_newline: Option<bool>,
    /// Line of the patch where the hunk starts, counted from 1.
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

    /// Returns the hunk without trailing empty lines that may be layout; `None` if it has none.
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
