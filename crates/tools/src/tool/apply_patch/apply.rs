//! Applies hunks to one file's content. Pure: content in, content out.
//!
//! Every hunk is located in the original content, so the context of hunks may overlap, but their changes may
//! not. Kept lines are taken from the file, however leniently they matched; new lines get the line ending of
//! their neighbours.

use std::ops::Range;

use super::line_match::{self, Leniency};
use super::lines::FileLines;
use super::section::{Hunk, HunkLine};
use crate::tool::closest_match;

/// Maximum line numbers listed when a match is not unique.
const NAMED_LINES: usize = 8;

/// Result of applying hunks to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AppliedHunks {
    pub(super) content: Vec<u8>,
    /// Zero-based ranges of new lines; empty where lines were only removed.
    pub(super) changed: Vec<Range<usize>>,
    /// Whether any hunk matched only leniently.
    pub(super) lenient: bool,
}

/// Replaces `removed` lines at a position of the original content.
struct LineEdit {
    place: usize,
    removed: usize,
    added: Vec<String>,
    /// Index of the hunk it belongs to.
    hunk: usize,
}

/// Applies all hunks; the error has one problem for each hunk that fails.
pub(super) fn apply(content: &[u8], hunks: &[Hunk]) -> Result<AppliedHunks, Vec<String>> {
    let file = FileLines::split(content);
    let mut edits: Vec<LineEdit> = Vec::new();
    let mut problems = Vec::new();
    let mut final_newline = None;
    let mut lenient = false;
    let (mut cursor, mut drift) = (0, 0isize);
    for (number, hunk) in hunks.iter().enumerate() {
        let alike = hunks[number..].iter().filter(|other| other.old_lines() == hunk.old_lines()).count();
        let search = |hunk: &Hunk, from: usize| locate(&file, hunk, &HunkHints { from, drift, alike });
        let found = search(hunk, cursor).or_else(|problem| {
            // Retry without trailing blank lines that may be layout, and from the start for hunks out of
            // order.
            let loose = hunk.without_loose_blanks();
            let loose = loose.as_ref();
            loose
                .and_then(|loose| search(loose, cursor).ok())
                .or_else(|| (cursor > 0).then(|| search(hunk, 0).ok())?)
                .or_else(|| loose.filter(|_| cursor > 0).and_then(|loose| search(loose, 0).ok()))
                .ok_or(problem)
        });
        match found {
            Ok(found) => {
                lenient |= found.leniency > Leniency::Exact;
                if let Some(hint) = hunk.hint {
                    drift = found.place.cast_signed() - hint.cast_signed();
                }
                let end = push_edits(&mut edits, &file, &found, number);
                cursor = cursor.max(end);
                if hunk.new_final_newline.is_some() && found.place + found.length == file.lines.len() {
                    final_newline = hunk.new_final_newline;
                }
            }
            Err(problem) => {
                problems.push(format!("hunk {} (line {} of the patch): {problem}", number + 1, hunk.at))
            }
        }
    }
    if problems.is_empty() {
        edits.sort_by_key(|edit| (edit.place, edit.hunk));
        problems.extend(overlaps(&edits));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let (content, changed) = put_together(&file, &edits, final_newline);
    Ok(AppliedHunks { content, changed, lenient })
}

/// A hunk located in the file.
struct LocatedHunk {
    place: usize,
    length: usize,
    leniency: Leniency,
    lines: Vec<HunkLine>,
}

/// Hints about a hunk's position besides its lines.
struct HunkHints {
    /// End of the previous hunk.
    from: usize,
    /// Distance of the previous hunk from the position its header named.
    drift: isize,
    /// Number of hunks from this one on that have the same old lines.
    alike: usize,
}

fn locate(file: &FileLines<'_>, hunk: &Hunk, expected: &HunkHints) -> Result<LocatedHunk, String> {
    let lines = &file.lines;
    let mut from = expected.from;
    for anchor in &hunk.anchors {
        from = line_match::find_anchor(lines, anchor, from).ok_or_else(|| {
            let near = nearest_words(file, anchor, from);
            format!(
                "the line `{anchor}` after `@@` is not in the file{}. {near}",
                if from > 0 { " after the hunk before" } else { "" }
            )
        })?;
    }
    let wanted = hunk.old_lines();
    let found = |place: usize, leniency: Leniency| LocatedHunk {
        place,
        length: wanted.len(),
        leniency,
        lines: hunk.lines.clone(),
    };
    if wanted.is_empty() {
        let place = match (hunk.hint, hunk.anchors.is_empty() || hunk.at_end) {
            (Some(hint), true) if !hunk.at_end => hint.min(lines.len()),
            (_, true) => lines.len(),
            (_, false) => from,
        };
        return Ok(found(place, Leniency::Exact));
    }
    // A hunk marked as end of file is tried there first.
    if (hunk.at_end || hunk.old_final_newline == Some(false))
        && let Some(place) = lines.len().checked_sub(wanted.len()).filter(|place| *place >= from)
        && let Some((leniency, _)) = line_match::find(lines, &wanted, place)
    {
        return Ok(found(place, leniency));
    }
    let Some((leniency, places)) = line_match::find(lines, &wanted, from) else {
        return Err(format!(
            "its lines are not in the file. {}",
            nearest_words(file, &wanted.join("\n"), from)
        ));
    };
    choose(&places, hunk, expected).map(|place| found(place, leniency)).ok_or_else(|| {
        let named: Vec<String> = places.iter().take(NAMED_LINES).map(|place| (place + 1).to_string()).collect();
        format!(
            "its lines occur {} times, at lines {}{}. Add more lines of context, or `@@` with a line that stands before the right place",
            places.len(),
            named.join(", "),
            if places.len() > NAMED_LINES { ", …" } else { "" }
        )
    })
}

/// Chooses among matches: the only one, the first after an anchor, the one closest to the line number, or the
/// first if there are as many matches as identical hunks.
fn choose(places: &[usize], hunk: &Hunk, expected: &HunkHints) -> Option<usize> {
    match (places, hunk.hint) {
        ([only], _) => Some(*only),
        ([first, ..], _) if !hunk.anchors.is_empty() => Some(*first),
        ([first, ..], None) if places.len() == expected.alike => Some(*first),
        (_, Some(hint)) => {
            let expected = hint.saturating_add_signed(expected.drift);
            let nearest = places.iter().min_by_key(|place| place.abs_diff(expected))?;
            let as_near =
                places.iter().filter(|place| place.abs_diff(expected) == nearest.abs_diff(expected)).count();
            (as_near == 1).then_some(*nearest)
        }
        _ => None,
    }
}

fn nearest_words(file: &FileLines<'_>, wanted: &str, from: usize) -> String {
    let text: Vec<String> =
        file.lines.iter().map(|line| String::from_utf8_lossy(line.text).into_owned()).collect();
    match closest_match::find_after(&text.join("\n"), wanted, from) {
        Some(place) => place.describe(400),
        None => "Nothing in the file is like it; read the file again.".to_owned(),
    }
}

/// Adds one edit per run of changed lines of the hunk; returns the end of the last one.
fn push_edits(edits: &mut Vec<LineEdit>, file: &FileLines<'_>, found: &LocatedHunk, hunk: usize) -> usize {
    let shift = IndentShift::between(file, found);
    let mut place = found.place;
    let mut end = found.place;
    let mut open: Option<LineEdit> = None;
    for line in &found.lines {
        if let HunkLine::Keep(_) = line {
            edits.extend(open.take());
            place += 1;
            continue;
        }
        let edit = open.get_or_insert_with(|| LineEdit { place, removed: 0, added: Vec::new(), hunk });
        match line {
            HunkLine::Remove(_) => {
                edit.removed += 1;
                place += 1;
            }
            HunkLine::Add(text) => edit.added.push(shift.apply(text)),
            HunkLine::Keep(_) => {}
        }
        end = place;
    }
    edits.extend(open);
    end
}

/// Uniform difference in indentation between the file and the hunk; `Same` if it is not uniform.
enum IndentShift {
    Same,
    More(String),
    Less(String),
}

impl IndentShift {
    fn between(file: &FileLines<'_>, found: &LocatedHunk) -> Self {
        if found.leniency < Leniency::SurroundingSpace {
            return Self::Same;
        }
        let olds = found.lines.iter().filter_map(|line| match line {
            HunkLine::Keep(text) | HunkLine::Remove(text) => Some(text.as_str()),
            HunkLine::Add(_) => None,
        });
        let mut shift: Option<Self> = None;
        for (line, old) in file.lines[found.place..].iter().zip(olds) {
            let line = String::from_utf8_lossy(line.text);
            if line.trim().is_empty() || old.trim().is_empty() {
                continue;
            }
            let (in_file, in_patch) = (line_match::indentation(&line), line_match::indentation(old));
            let this = if let Some(more) = in_file.strip_suffix(in_patch).filter(|more| !more.is_empty()) {
                Self::More(more.to_owned())
            } else if let Some(less) = in_patch.strip_suffix(in_file).filter(|less| !less.is_empty()) {
                Self::Less(less.to_owned())
            } else {
                Self::Same
            };
            match (&shift, &this) {
                (None, _) => shift = Some(this),
                (Some(Self::More(known)), Self::More(more)) if known == more => {}
                (Some(Self::Less(known)), Self::Less(less)) if known == less => {}
                _ => return Self::Same,
            }
        }
        shift.unwrap_or(Self::Same)
    }

    fn apply(&self, text: &str) -> String {
        match self {
            Self::More(more) if !text.trim().is_empty() => format!("{more}{text}"),
            Self::Less(less) => text.strip_prefix(less.as_str()).unwrap_or(text).to_owned(),
            _ => text.to_owned(),
        }
    }
}

fn overlaps(edits: &[LineEdit]) -> Vec<String> {
    edits
        .windows(2)
        .filter(|pair| {
            let end = pair[0].place + pair[0].removed;
            pair[0].hunk != pair[1].hunk
                && (end > pair[1].place
                    || (pair[0].place == pair[1].place && pair[0].removed > 0 && pair[1].removed > 0))
        })
        .map(|pair| {
            format!(
                "hunks {} and {} change the same lines, around line {}. Make them one hunk",
                pair[0].hunk.min(pair[1].hunk) + 1,
                pair[0].hunk.max(pair[1].hunk) + 1,
                pair[1].place + 1
            )
        })
        .collect()
}

fn put_together(
    file: &FileLines<'_>,
    edits: &[LineEdit],
    final_newline: Option<bool>,
) -> (Vec<u8>, Vec<Range<usize>>) {
    let mut out: Vec<(Vec<u8>, Vec<u8>)> = Vec::with_capacity(file.lines.len());
    let mut changed = Vec::with_capacity(edits.len());
    let mut from = 0;
    let keep = |out: &mut Vec<(Vec<u8>, Vec<u8>)>, range: Range<usize>| {
        out.extend(file.lines[range].iter().map(|line| (line.text.to_vec(), line.ending.to_vec())));
    };
    for edit in edits {
        keep(&mut out, from..edit.place);
        let ending = file.ending_at(edit.place);
        let first = out.len();
        for text in &edit.added {
            // In a CRLF file a carriage return written in the patch is part of the line ending.
            let text = if ending == b"\r\n" { text.strip_suffix('\r').unwrap_or(text) } else { text };
            out.push((text.as_bytes().to_vec(), ending.to_vec()));
        }
        changed.push(first..out.len());
        from = edit.place + edit.removed;
    }
    keep(&mut out, from..file.lines.len());
    let ends = final_newline.unwrap_or_else(|| file.final_newline());
    let default_ending = file.ending_at(file.lines.len());
    let last = out.len().saturating_sub(1);
    let mut content = file.mark.to_vec();
    for (at, (text, ending)) in out.iter().enumerate() {
        content.extend_from_slice(text);
        match (at == last, ends) {
            (true, false) => {}
            (true, true) | (false, _) if ending.is_empty() => content.extend_from_slice(default_ending),
            _ => content.extend_from_slice(ending),
        }
    }
    (content, changed)
}
