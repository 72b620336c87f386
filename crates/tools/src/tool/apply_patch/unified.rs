//! Parser for unified diffs, as written by `diff -u`, git, and models imitating them. Line numbers and counts
//! are only hints, because they are often wrong.

use super::envelope::{hunk_line, shortened};
use super::parse::{NumberedLine, ParseError};
use super::section::{FileSection, Hunk, HunkLine, SectionAction};

const NOTHING: &str = "/dev/null";

pub(super) fn parse(lines: &[NumberedLine<'_>]) -> Result<Vec<FileSection>, ParseError> {
    let mut sections = Vec::new();
    let mut reader = Reader { lines, at: 0 };
    while let Some((at, line)) = reader.peek(0) {
        if line.starts_with("diff --git ") {
            reader.at += 1;
            sections.extend(reader.git_file(at, line)?);
        } else if reader.at_file_names() {
            sections.push(reader.file(at, GitHeader::default())?);
        } else if line.starts_with("@@") {
            return Err(ParseError {
                at,
                what: "a hunk without a file: `--- a/PATH` and `+++ b/PATH` are missing before it".to_owned(),
            });
        } else {
            // Skip text around the diff, `index` lines and the like.
            reader.at += 1;
        }
    }
    Ok(sections)
}

/// Metadata of a git diff besides file names and hunks.
#[derive(Default)]
struct GitHeader {
    new_mode: Option<u32>,
    deleted: bool,
    rename: Option<(String, String)>,
}

struct Reader<'l, 'p> {
    lines: &'l [NumberedLine<'p>],
    at: usize,
}

impl<'p> Reader<'_, 'p> {
    fn peek(&self, ahead: usize) -> Option<NumberedLine<'p>> {
        self.lines.get(self.at + ahead).copied()
    }

    fn starts(&self, ahead: usize, prefix: &str) -> bool {
        self.peek(ahead).is_some_and(|(_, line)| line.starts_with(prefix))
    }

    /// Whether the next two lines are file names. Inside a hunk, a removed and an added line can look the
    /// same, but real file names are followed by a hunk or by nothing.
    fn at_file_names(&self) -> bool {
        self.starts(0, "--- ")
            && self.starts(1, "+++ ")
            && self.peek(2).is_none_or(|(_, line)| {
                line.starts_with("@@") || line.starts_with("diff --git ") || line.trim().is_empty()
            })
    }

    fn git_file(&mut self, at: usize, first: &str) -> Result<Option<FileSection>, ParseError> {
        let mut header = GitHeader::default();
        let (mut from, mut mode_changed) = (None, false);
        while let Some((at, line)) = self.peek(0) {
            if line.starts_with("diff --git ") || line.starts_with("--- ") || line.starts_with("@@") {
                break;
            }
            if let Some(mode) = line.strip_prefix("new file mode ") {
                header.new_mode = u32::from_str_radix(mode.trim(), 8).ok().map(|mode| mode & 0o777);
            } else if line.starts_with("deleted file mode") {
                header.deleted = true;
            } else if line.starts_with("old mode") || line.starts_with("new mode") {
                mode_changed = true;
            } else if let Some(path) = line.strip_prefix("rename from ") {
                from = Some(unquoted(path));
            } else if let Some(path) = line.strip_prefix("rename to ") {
                header.rename = from.take().map(|from| (from, unquoted(path)));
            } else if line.starts_with("copy from")
                || line.starts_with("GIT binary patch")
                || line.starts_with("Binary files")
            {
                return Err(ParseError {
                    at,
                    what: format!("`{}` is not supported; write the whole file instead", shortened(line)),
                });
            }
            self.at += 1;
        }
        if self.at_file_names() {
            return self.file(at, header).map(Some);
        }
        // Without hunks: an empty file, a rename, or a mode change.
        if let Some((from, to)) = header.rename {
            let action = SectionAction::Update { move_to: Some(to), hunks: Vec::new() };
            return Ok(Some(FileSection { path: from, action, at }));
        }
        let name =
            || git_name(first).ok_or_else(|| ParseError { at, what: "the path cannot be read".to_owned() });
        if header.deleted {
            return Ok(Some(FileSection {
                path: name()?,
                action: SectionAction::Delete { hunks: Vec::new() },
                at,
            }));
        }
        if header.new_mode.is_some() {
            let action = SectionAction::Add { lines: Vec::new(), final_newline: true, mode: header.new_mode };
            return Ok(Some(FileSection { path: name()?, action, at }));
        }
        if mode_changed {
            return Err(ParseError { at, what: "a change of mode alone; use chmod in the shell".to_owned() });
        }
        Ok(None)
    }

    fn file(&mut self, at: usize, header: GitHeader) -> Result<FileSection, ParseError> {
        let (old, new) = match (self.peek(0), self.peek(1)) {
            (Some((_, old)), Some((_, new))) => (name(&old[4..]), name(&new[4..])),
            _ => return Err(ParseError { at, what: "the names of the file are missing".to_owned() }),
        };
        self.at += 2;
        let (old, new) = without_prefixes(old, new);
        let mut hunks = Vec::new();
        while self.starts(0, "@@") {
            hunks.push(self.hunk()?);
        }
        let empty = |what: &str| ParseError { at, what: what.to_owned() };
        let (path, action) = match (old.as_str(), new.as_str()) {
            (NOTHING, NOTHING) => return Err(empty("a change from nothing to nothing")),
            (NOTHING, _) => (new, added(&hunks, header.new_mode, at)?),
            (_, NOTHING) => (old, SectionAction::Delete { hunks }),
            _ => {
                // `diff -u` against a backup copy names the copy first.
                let aside = [".orig", ".old", ".bak", "~"]
                    .iter()
                    .any(|ending| old.strip_suffix(ending) == Some(&new));
                let (from, to) =
                    header.rename.unwrap_or_else(|| if aside { (new.clone(), new) } else { (old, new) });
                let move_to = (from != to).then_some(to);
                if hunks.is_empty() && move_to.is_none() {
                    return Err(empty("the file has no hunk: lines that begin with `@@ -` are missing"));
                }
                (from, SectionAction::Update { move_to, hunks })
            }
        };
        Ok(FileSection { path, action, at })
    }

    fn hunk(&mut self) -> Result<Hunk, ParseError> {
        let Some((at, line)) = self.peek(0) else {
            return Err(ParseError { at: 1, what: "a hunk is missing".to_owned() });
        };
        let (hint, counts) = header(line).unzip();
        let mut hunk = Hunk { at, hint, ..Hunk::default() };
        if hint.is_none() {
            // `@@ ... @@` carries no information; `@@ fn main() {` is an anchor.
            let anchor = line.trim_matches(['@', ' ', '.']);
            hunk.anchors.extend((!anchor.is_empty()).then(|| anchor.to_owned()));
        }
        self.at += 1;
        while let Some((at, line)) = self.peek(0) {
            if line.starts_with("@@") || line.starts_with("diff --git ") || self.at_file_names() {
                break;
            }
            if line.starts_with('\\') {
                match hunk.lines.last() {
                    Some(HunkLine::Remove(_)) => hunk.old_final_newline = Some(false),
                    Some(HunkLine::Add(_)) => hunk.new_final_newline = Some(false),
                    Some(HunkLine::Keep(_)) => {
                        hunk.old_final_newline = Some(false);
                        hunk.new_final_newline = Some(false);
                    }
                    None => {}
                }
                self.at += 1;
                continue;
            }
            // The signature separator that git and mail programs put after the last hunk.
            if line == "-- " && Some(hunk.counts()) == counts {
                self.at = self.lines.len();
                break;
            }
            match hunk_line(line) {
                Some(parsed) => hunk.lines.push(parsed),
                None if Some(hunk.counts()) == counts => break,
                None => {
                    return Err(ParseError {
                        at,
                        what: format!(
                            "a line of a hunk begins with a space, `-` or `+`; found `{}`",
                            shortened(line)
                        ),
                    });
                }
            }
            hunk.loose_blanks = if line.is_empty() { hunk.loose_blanks + 1 } else { 0 };
            self.at += 1;
        }
        if hunk.old_final_newline == Some(false) && hunk.new_final_newline.is_none() {
            hunk.new_final_newline = Some(true);
        }
        // Adding or removing the final newline is a change even if no line differs.
        let newline_changes =
            hunk.new_final_newline.is_some() && hunk.old_final_newline != hunk.new_final_newline;
        if !hunk.changes_something() && !newline_changes {
            return Err(ParseError {
                at,
                what: "the hunk changes nothing: no line begins with `-` or `+`".to_owned(),
            });
        }
        Ok(hunk)
    }
}

impl Hunk {
    /// Number of lines before and after.
    fn counts(&self) -> (usize, usize) {
        self.lines.iter().fold((0, 0), |(old, new), line| match line {
            HunkLine::Keep(_) => (old + 1, new + 1),
            HunkLine::Remove(_) => (old + 1, new),
            HunkLine::Add(_) => (old, new + 1),
        })
    }
}

/// Parses a hunk header: zero-based start line, and the line counts before and after.
pub(super) fn header(line: &str) -> Option<(usize, (usize, usize))> {
    let rest = line.strip_prefix("@@ -")?;
    let (old, rest) = rest.split_once(" +")?;
    let new = rest.split([' ', '@']).next()?;
    let range = |text: &str| -> Option<(usize, usize)> {
        match text.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.trim().parse().ok()?)),
            None => Some((text.trim().parse().ok()?, 1)),
        }
    };
    let ((start, old_count), (_, new_count)) = (range(old)?, range(new)?);
    // With a count of zero, the start is the line before the insertion.
    let start = if old_count == 0 { start } else { start.saturating_sub(1) };
    Some((start, (old_count, new_count)))
}

fn added(hunks: &[Hunk], mode: Option<u32>, at: usize) -> Result<SectionAction, ParseError> {
    let mut lines = Vec::new();
    let mut final_newline = true;
    for hunk in hunks {
        for line in &hunk.lines {
            match line {
                HunkLine::Add(text) => lines.push(text.clone()),
                // Layout after the last hunk.
                HunkLine::Keep(text) if text.trim().is_empty() => {}
                _ => {
                    return Err(ParseError {
                        at,
                        what: "a new file has only lines that begin with `+`".to_owned(),
                    });
                }
            }
        }
        final_newline = hunk.new_final_newline != Some(false);
    }
    Ok(SectionAction::Add { lines, final_newline, mode })
}

/// File name from a `---` or `+++` line, without the timestamp that may follow it.
fn name(text: &str) -> String {
    if text.starts_with('"') {
        return unquoted(text.trim_end());
    }
    text.split('\t').next().unwrap_or_default().trim_end().to_owned()
}

/// Strips git's `a/` and `b/` only if both names have them, because a directory may have that name.
fn without_prefixes(old: String, new: String) -> (String, String) {
    let stripped = |name: &str, prefix: &str| name.strip_prefix(prefix).map(str::to_owned);
    match (old.as_str(), new.as_str()) {
        (NOTHING, _) => {
            let new = stripped(&new, "b/").unwrap_or(new);
            (old, new)
        }
        (_, NOTHING) => {
            let old = stripped(&old, "a/").unwrap_or(old);
            (old, new)
        }
        _ => match (stripped(&old, "a/"), stripped(&new, "b/")) {
            (Some(old), Some(new)) => (old, new),
            _ => (old, new),
        },
    }
}

/// File name from `diff --git a/NAME b/NAME`, if both names are equal.
fn git_name(line: &str) -> Option<String> {
    let names = line.strip_prefix("diff --git ")?;
    if let Some(quoted) = names.strip_prefix('"') {
        let (first, _) = quoted.split_once('"')?;
        return unquoted(&format!("\"{first}\"")).strip_prefix("a/").map(str::to_owned);
    }
    let half = names.len() / 2;
    let (first, second) = (names.get(..half)?, names.get(half + 1..)?);
    let (first, second) = (first.strip_prefix("a/")?, second.strip_prefix("b/")?);
    (first == second).then(|| first.to_owned())
}

/// Decodes git's quoted names, in which unusual bytes are written as three octal digits.
fn unquoted(name: &str) -> String {
    let Some(inner) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else {
        return name.trim_end().to_owned();
    };
    let mut out = Vec::new();
    let mut bytes = inner.bytes().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                while let Some(&next @ b'0'..=b'7') = bytes.peek() {
                    if value > 0o37 {
                        break;
                    }
                    value = value * 8 + u32::from(next - b'0');
                    bytes.next();
                }
                out.push(u8::try_from(value).unwrap_or(b'?'));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
