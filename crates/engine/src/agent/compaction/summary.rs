//! The second tier: the text that stands where old turns were, one line a turn, written by rule. A later
//! compaction reads the lines back and goes on with them, so a summary never holds a summary.

use fusee_model::Message;

use super::deed::{Arguments, Kind};
use super::outline::{Exchange, Turn};

const HEADING: &str = "[Earlier turns, summarised to save context. What was read there is no longer shown: read \
                       again what you need.]";

const BULLET: &str = "- ";
const BETWEEN: &str = " · ";
const LEFT_OUT: &str = " earlier turns, shortened";

/// Bounds of one line, in bytes or entries.
const USER_BYTES: usize = 300;
const SAID_BYTES: usize = 160;
const COMMAND_BYTES: usize = 100;
const PATH_BYTES: usize = 120;
const ENTRIES: usize = 8;

/// More files of one turn than this are only counted.
const MOST_FILES: usize = 64;

/// A stop before this is an abbreviation or the number of a list.
const SHORTEST_SENTENCE: usize = 12;

/// How far from either end of a command's output its exit code is looked for.
const EXIT_CODE_WITHIN: usize = 300;

/// Whether a user message is a summary that [`Lines::render`] made.
pub(super) fn is_summary(text: &str) -> bool {
    text.starts_with(HEADING)
}

/// What is told of the old turns, oldest first.
#[derive(Default)]
pub(super) struct Lines {
    lines: Vec<Line>,
    /// By turn: how many lines tell of it and of those before.
    upto: Vec<usize>,
}

/// One line, and what of it lives on when the line itself has to go.
#[derive(Default)]
struct Line {
    text: String,
    turns: u32,
    read: Files,
    changed: Files,
}

/// Some files by name, and how many more.
#[derive(Clone, Default)]
struct Files {
    names: Vec<String>,
    more: u32,
}

impl Lines {
    /// Tells of one more turn: of its user messages that `untold` lets through, and of its reply. `exchanges`
    /// are the turn's own.
    pub(super) fn tell(
        &mut self,
        messages: &[Message],
        turn: &Turn,
        exchanges: &[Exchange<'_>],
        untold: impl Fn(usize) -> bool,
    ) {
        for at in turn.messages.clone().filter(|at| untold(*at)) {
            match &messages[at] {
                Message::User { text } if is_summary(text) => {
                    self.lines.extend(text.lines().filter_map(Line::read_back))
                }
                Message::User { text } => {
                    self.lines.push(Line {
                        text: format!("user: {}", squeezed(text, USER_BYTES)),
                        ..Line::default()
                    });
                }
                Message::Assistant { text, .. } => self.lines.extend(Line::of_reply(text, exchanges)),
                Message::Tool { .. } => {}
            }
        }
        self.upto.push(self.lines.len());
    }

    /// The summary of the first `turns` turns in about `bytes` bytes; none if there is nothing to tell. The
    /// newest lines are kept, of the others only the names of files.
    pub(super) fn render(&self, turns: usize, bytes: usize) -> Option<String> {
        let lines = &self.lines[..turns.checked_sub(1).map_or(0, |last| self.upto[last])];
        if lines.is_empty() {
            return None;
        }
        let length = |line: &Line| BULLET.len() + line.text.len() + 1;
        let mut room = bytes.saturating_sub(HEADING.len());
        let all: usize = lines.iter().map(length).sum();
        let mut first = 0;
        let mut shortened = None;
        if all > room {
            let share = room / 4;
            room -= share;
            first = lines.len();
            while first > 0 && length(&lines[first - 1]) <= room {
                first -= 1;
                room -= length(&lines[first]);
            }
            shortened = Some(shorten(&lines[..first], share));
        }
        let mut text = String::with_capacity(bytes + HEADING.len());
        text.push_str(HEADING);
        let kept = lines[first..].iter().map(|line| line.text.as_str());
        for line in shortened.as_deref().into_iter().chain(kept) {
            text.push('\n');
            text.push_str(BULLET);
            text.push_str(line);
        }
        Some(text)
    }
}

/// One line for many.
fn shorten(lines: &[Line], bytes: usize) -> String {
    let turns: u32 = lines.iter().map(|line| line.turns).sum();
    let mut text = format!("{turns}{LEFT_OUT}");
    let mut room = bytes.saturating_sub(text.len());
    for (verb, files) in [
        ("changed ", Files::together(lines, |line| &line.changed)),
        ("read ", Files::together(lines, |line| &line.read)),
    ] {
        let Some(listed) = files.list(room, usize::MAX) else { continue };
        room = room.saturating_sub(listed.len());
        text.push_str(BETWEEN);
        text.push_str(verb);
        text.push_str(&listed);
    }
    text
}

impl Line {
    /// None if the reply left nothing to tell.
    fn of_reply(said: &str, exchanges: &[Exchange<'_>]) -> Option<Line> {
        let mut line = Line { turns: 1, ..Line::default() };
        let mut ran = Vec::new();
        let mut other = Vec::new();
        for exchange in exchanges {
            let arguments = || Arguments::of(&exchange.call.arguments);
            let name = exchange.name;
            match Kind::of(name) {
                Kind::ReadFile | Kind::ReadFiles if exchange.ok => line.read.add(arguments().files()),
                Kind::Change if exchange.ok => line.changed.add(arguments().files()),
                Kind::Patch if exchange.ok => line.changed.add(arguments().patched_files()),
                Kind::Command => ran.push(command(&arguments(), exchange)),
                Kind::Look => {
                    let arguments = arguments();
                    let pattern =
                        arguments.pattern().map(|text| format!("`{}`", squeezed(text, COMMAND_BYTES)));
                    let what = pattern.or_else(|| listed(&arguments)).unwrap_or_default();
                    other.push(told(format!("{name} {what}"), exchange.ok));
                }
                Kind::Ask => {
                    let question = squeezed(arguments().question().unwrap_or_default(), SAID_BYTES);
                    other.push(format!(
                        "asked the user `{question}`: {}",
                        squeezed(exchange.content, USER_BYTES)
                    ));
                }
                Kind::Plan | Kind::Think => {}
                Kind::ReadFile | Kind::ReadFiles | Kind::Change | Kind::Patch => {
                    let what = listed(&arguments()).unwrap_or_default();
                    other.push(told(format!("{name} {what}"), exchange.ok));
                }
                Kind::ReadSection | Kind::Other => other.push(told(format!("called {name}"), exchange.ok)),
            }
        }
        line.text = line.describe(&ran, &other, &first_sentence(said));
        (!line.text.is_empty()).then_some(line)
    }

    fn describe(&self, ran: &[String], other: &[String], said: &str) -> String {
        let mut parts = Vec::new();
        parts.extend(self.read.list(usize::MAX, ENTRIES).map(|files| format!("read {files}")));
        parts.extend(self.changed.list(usize::MAX, ENTRIES).map(|files| format!("changed {files}")));
        parts.extend(entries(ran).map(|commands| format!("ran {commands}")));
        parts.extend(entries(other));
        if !said.is_empty() {
            parts.push(format!("said: {said}"));
        }
        parts.join(BETWEEN)
    }

    /// A line of an earlier summary.
    fn read_back(line: &str) -> Option<Line> {
        let text = line.strip_prefix(BULLET)?;
        let mut line = Line { text: text.to_owned(), turns: 1, ..Line::default() };
        for part in text.split(BETWEEN) {
            if let Some(turns) = part.strip_suffix(LEFT_OUT).and_then(|turns| turns.parse().ok()) {
                line.turns = turns;
            } else if let Some(files) = part.strip_prefix("read ") {
                line.read = Files::read_back(files);
            } else if let Some(files) = part.strip_prefix("changed ") {
                line.changed = Files::read_back(files);
            } else if part.starts_with("user: ") {
                line.turns = 0;
                break;
            } else if part.starts_with("said: ") {
                break;
            }
        }
        Some(line)
    }
}

impl Files {
    fn add(&mut self, names: Vec<String>) {
        for name in names {
            let name = squeezed(&name, PATH_BYTES);
            if self.names.len() == MOST_FILES {
                self.more = self.more.saturating_add(1);
            } else if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
    }

    fn read_back(list: &str) -> Files {
        let mut files = Files::default();
        for name in list.split(", ") {
            match name
                .strip_prefix('+')
                .and_then(|rest| rest.strip_suffix(" more"))
                .and_then(|n| n.parse().ok())
            {
                Some(more) => files.more = more,
                None => files.names.push(name.to_owned()),
            }
        }
        files
    }

    /// Every file of several lines once, the newest first.
    fn together(lines: &[Line], of: impl Fn(&Line) -> &Files) -> Files {
        let mut known = std::collections::HashSet::new();
        let mut together = Files::default();
        for files in lines.iter().rev().map(of) {
            together.more = together.more.saturating_add(files.more);
            let new = files.names.iter().filter(|name| known.insert(name.as_str()));
            together.names.extend(new.cloned());
        }
        together
    }

    /// As many as there is room for.
    fn list(&self, bytes: usize, entries: usize) -> Option<String> {
        let mut list = String::new();
        let mut shown = 0;
        for name in self.names.iter().take(entries) {
            if list.len() + name.len() + 2 > bytes {
                break;
            }
            if shown > 0 {
                list.push_str(", ");
            }
            list.push_str(name);
            shown += 1;
        }
        let hidden = u32::try_from(self.names.len() - shown).unwrap_or(u32::MAX).saturating_add(self.more);
        match (shown, hidden) {
            (0, 0) => None,
            (_, 0) => Some(list),
            (0, _) => Some(format!("+{hidden} more")),
            (_, _) => Some(format!("{list}, +{hidden} more")),
        }
    }
}

fn entries(items: &[String]) -> Option<String> {
    let shown = items.get(..ENTRIES).unwrap_or(items);
    let more = items.len() - shown.len();
    match (shown, more) {
        ([], _) => None,
        (shown, 0) => Some(shown.join(", ")),
        (shown, more) => Some(format!("{}, +{more} more", shown.join(", "))),
    }
}

fn told(deed: String, ok: bool) -> String {
    let deed = deed.trim_end();
    if ok { deed.to_owned() } else { format!("{deed} (failed)") }
}

/// The files that a call names.
fn listed(arguments: &Arguments) -> Option<String> {
    let mut files = Files::default();
    files.add(arguments.files());
    files.list(PATH_BYTES, ENTRIES)
}

fn command(arguments: &Arguments, exchange: &Exchange<'_>) -> String {
    let line = squeezed(arguments.command().unwrap_or("?"), COMMAND_BYTES);
    match exit_code(exchange.content) {
        Some(code) => format!("`{line}` (exit {code})"),
        None => told(format!("`{line}`"), exchange.ok),
    }
}

/// The exit code that the answer of a command states at its beginning or end.
fn exit_code(content: &str) -> Option<i32> {
    let start = (0..=EXIT_CODE_WITHIN.min(content.len())).rev().find(|at| content.is_char_boundary(*at))?;
    let end = content.len().saturating_sub(EXIT_CODE_WITHIN);
    let end = (end..=content.len()).find(|at| content.is_char_boundary(*at))?;
    let (head, tail) = (&content[..start], &content[end..]);
    head.lines().chain(tail.lines()).find_map(|line| {
        let number = line.split_once("exit code").or_else(|| line.split_once("exit status"))?.1;
        let number = number.trim_start_matches([' ', ':', '=']);
        let end = number.char_indices().find(|(at, c)| !(c.is_ascii_digit() || (*at == 0 && *c == '-')));
        number[..end.map_or(number.len(), |(at, _)| at)].parse().ok()
    })
}

/// What a reply says first is mostly what it decided.
fn first_sentence(text: &str) -> String {
    let text = text.trim_start();
    let line = text.lines().next().unwrap_or_default();
    let end = line.char_indices().find_map(|(at, c)| {
        let after = &line[at + c.len_utf8()..];
        let stop = at >= SHORTEST_SENTENCE && matches!(c, '.' | '!' | '?');
        (stop && (after.is_empty() || after.starts_with(' '))).then_some(at + 1)
    });
    squeezed(&line[..end.unwrap_or(line.len())], SAID_BYTES)
}

/// On one line, in at most `bytes` bytes.
fn squeezed(text: &str, bytes: usize) -> String {
    let mut squeezed = String::new();
    for word in text.split_whitespace() {
        let space = usize::from(!squeezed.is_empty());
        if squeezed.len() + space + word.len() > bytes {
            if squeezed.is_empty() {
                let end = (0..=bytes).rev().find(|at| word.is_char_boundary(*at)).unwrap_or(0);
                squeezed.push_str(&word[..end]);
            }
            squeezed.push('…');
            break;
        }
        if space > 0 {
            squeezed.push(' ');
        }
        squeezed.push_str(word);
    }
    squeezed
}
