//! One line of a summary: what a turn did and said. [`SummaryLine::read_back`] parses the files back for the next
//! compaction.

use super::super::call_effect::{CallArguments, CallKind};
use super::super::turns::CallExchange;
use super::files::FileNames;

/// Separator between the parts of a line.
pub(super) const BETWEEN: &str = " · ";

/// Follows the number of turns in a line that condenses several.
pub(super) const SHORTENED: &str = " earlier turns, shortened";

/// Limits of one line, in bytes or entries.
const USER_BYTES: usize = 300;
const SAID_BYTES: usize = 160;
const COMMAND_BYTES: usize = 100;
const CLOSING_BYTES: usize = 40;
const FILES_BYTES: usize = 120;
const ENTRIES: usize = 8;

/// A full stop before this position belongs to an abbreviation or a list number.
const SHORTEST_SENTENCE: usize = 12;

/// One line, and the data that is kept when the line itself is dropped.
#[derive(Default)]
pub(super) struct SummaryLine {
    pub text: String,
    /// Number of turns it covers.
    pub turns: u32,
    pub read: FileNames,
    pub changed: FileNames,
}

impl SummaryLine {
    pub(super) fn of_user(text: &str) -> SummaryLine {
        SummaryLine { text: format!("user: {}", squeezed(text, USER_BYTES)), ..SummaryLine::default() }
    }

    /// `None` if the reply has nothing to summarise.
    pub(super) fn of_reply(said: &str, exchanges: &[CallExchange<'_>]) -> Option<SummaryLine> {
        let mut line = SummaryLine { turns: 1, ..SummaryLine::default() };
        let mut ran = Vec::new();
        let mut other = Vec::new();
        for exchange in exchanges {
            let arguments = || CallArguments::parse(exchange.name, &exchange.call.arguments);
            let name = exchange.name;
            match CallKind::from_tool(name) {
                CallKind::ReadFile | CallKind::ReadFiles if exchange.ok => line.read.add(arguments().files()),
                CallKind::Change if exchange.ok => line.changed.add(arguments().files()),
                CallKind::Patch if exchange.ok => line.changed.add(arguments().patched_files()),
                CallKind::Command => ran.push(command(&arguments(), exchange)),
                CallKind::Job => other.push(job(&arguments(), exchange)),
                CallKind::Look => {
                    let arguments = arguments();
                    let pattern =
                        arguments.pattern().map(|text| format!("`{}`", squeezed(text, COMMAND_BYTES)));
                    let what = pattern.or_else(|| listed(&arguments)).unwrap_or_default();
                    other.push(describe(format!("{name} {what}"), exchange.ok));
                }
                CallKind::Ask => {
                    let question = squeezed(arguments().question().unwrap_or_default(), SAID_BYTES);
                    other.push(format!(
                        "asked the user `{question}`: {}",
                        squeezed(exchange.content, USER_BYTES)
                    ));
                }
                // Results kept verbatim are not summarised, or they would be repeated at every compaction.
                CallKind::Plan | CallKind::Think => {}
                CallKind::ReadSection if exchange.ok => {}
                CallKind::ReadFile | CallKind::ReadFiles | CallKind::Change | CallKind::Patch => {
                    let what = listed(&arguments()).unwrap_or_default();
                    other.push(describe(format!("{name} {what}"), exchange.ok));
                }
                CallKind::ReadSection | CallKind::Other => {
                    other.push(describe(format!("called {name}"), exchange.ok))
                }
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

    /// Parses a line of an earlier summary.
    pub(super) fn read_back(line: &str) -> Option<SummaryLine> {
        let text = line.strip_prefix(super::BULLET)?;
        let mut line = SummaryLine { text: text.to_owned(), turns: 1, ..SummaryLine::default() };
        let mut shortened = false;
        for part in text.split(BETWEEN) {
            if let Some(turns) = part.strip_suffix(SHORTENED).and_then(|turns| turns.parse().ok()) {
                line.turns = turns;
                shortened = true;
            } else if let Some(files) = part.strip_prefix("read ") {
                line.read = FileNames::read_back(files);
            } else if let Some(files) = part.strip_prefix("changed ") {
                line.changed = FileNames::read_back(files);
            } else if part.starts_with("user: ") {
                line.turns = 0;
                break;
            } else if part.starts_with("said: ") {
                break;
            }
        }
        if shortened {
            // A condensed line lists files newest first; all others list them oldest first.
            line.read.names.reverse();
            line.changed.names.reverse();
        }
        Some(line)
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

fn describe(effect: String, ok: bool) -> String {
    let effect = effect.trim_end();
    if ok { effect.to_owned() } else { format!("{effect} (failed)") }
}

/// The files that a call names.
fn listed(arguments: &CallArguments) -> Option<String> {
    FileNames::new(arguments.files()).list(FILES_BYTES, ENTRIES)
}

fn command(arguments: &CallArguments, exchange: &CallExchange<'_>) -> String {
    let line = squeezed(arguments.command().unwrap_or("?"), COMMAND_BYTES);
    ended(format!("`{line}`"), exchange)
}

fn job(arguments: &CallArguments, exchange: &CallExchange<'_>) -> String {
    ended(format!("{} {}", exchange.name, arguments.job().unwrap_or_default()), exchange)
}

fn ended(effect: String, exchange: &CallExchange<'_>) -> String {
    match closing_words(exchange.content) {
        Some(words) => format!("{} ({words})", effect.trim_end()),
        None => describe(effect, exchange.ok),
    }
}

/// The bracketed last line of a command tool's output: exit code, signal, or timeout.
fn closing_words(content: &str) -> Option<String> {
    let line = content.trim_end().rsplit('\n').next()?;
    let words = line.strip_prefix('[')?.strip_suffix(']')?;
    let words = words.split([';', ':']).next()?;
    Some(match words.strip_prefix("exit code ") {
        Some(code) => format!("exit {}", squeezed(code, CLOSING_BYTES)),
        None => squeezed(words, CLOSING_BYTES),
    })
}

/// The first sentence of a reply, which mostly states its decision.
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

/// Collapses whitespace and truncates to at most `bytes` bytes.
pub(super) fn squeezed(text: &str, bytes: usize) -> String {
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
