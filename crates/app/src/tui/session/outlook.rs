//! What the next message would meet: what fills the model's window, how that is made less, which sections of the prompt
//! are open. The engine knows; here it becomes rows.

use std::collections::BTreeSet;

use fusee_engine::prompt::Shown;
use fusee_engine::run::{self, Carry, Settings, Shorter};

use super::Session;
use crate::face::line::{Line, Style};
use crate::face::words;
use crate::failure::Failure;

/// Cells of the bar of the largest kind.
const BAR: u64 = 20;

impl Session<'_> {
    /// What fills the window, by kind.
    pub(super) fn context(&self) -> Result<Vec<Line>, Failure> {
        let Some(run) = &self.continues else {
            return Ok(vec![Line::of(Style::Dim, "nothing was said yet: the window is empty")]);
        };
        let shares = run::window(&self.journal, run).map_err(Failure::failed)?;
        let most = self.choice.limits(&self.config).max_tokens;
        let all: u64 = shares.iter().map(|share| share.tokens).sum();
        let percent = |tokens: u64| format!("{:>3} %", tokens * 100 / most.max(1));
        let total = format!("about {} of {} tokens", words::tokens(all), words::tokens(most));
        let mut rows =
            vec![Line::of(Style::Bold, &total).and(Style::Dim, &format!(" ({})", percent(all).trim()))];
        let largest = shares.iter().map(|share| share.tokens).max().unwrap_or_default().max(1);
        for share in shares {
            let cells = (share.tokens * BAR).div_ceil(largest) as usize;
            let bar = self.show.glyphs().full.repeat(cells);
            let figures = format!("{:>6}  {}  ", words::tokens(share.tokens), percent(share.tokens));
            let row = Line::of(Style::Plain, &figures).and(Style::Plain, &share.kind);
            let row = row.and(Style::Dim, &format!(" ({})  ", share.items));
            rows.push(row.and(Style::Accent, &bar));
        }
        if self.carry == Carry::Shortened {
            rows.push(Line::of(Style::Dim, "/compact was said: the next message takes over less"));
        }
        Ok(rows)
    }

    /// Has the next message take over less.
    pub(super) fn compact(&mut self) -> Result<Line, Failure> {
        let Some(run) = &self.continues else {
            return Ok(Line::of(Style::Dim, "nothing was said yet: there is nothing to shorten"));
        };
        let limits = self.choice.limits(&self.config);
        match run::shorter(&self.journal, run, &limits).map_err(Failure::failed)? {
            None => Ok(Line::of(Style::Dim, "the conversation is short already: nothing could be saved")),
            Some(Shorter { before, after, .. }) => {
                self.carry = Carry::Shortened;
                let (before, after) = (words::tokens(before), words::tokens(after));
                let text = format!("{before} tokens of messages become {after} with the next message");
                Ok(Line::of(Style::Plain, &text))
            }
        }
    }

    /// The sections of the prompt as a tree.
    pub(super) fn sections(&self) -> Result<Vec<Line>, Failure> {
        let (settings, opened) = (self.with_prompt(), self.opened()?);
        let Some(rendered) = run::sections(&settings, &opened).map_err(Failure::usage)? else {
            let text = "the usual prompt drives this conversation: it has no sections (`fusee --prompt FILE` takes \
                        one that has)";
            return Ok(vec![Line::of(Style::Dim, text)]);
        };
        let row = |path: &str, open: bool, words: &str| {
            let (depth, name) = (path.matches('.').count(), path.rsplit('.').next().unwrap_or(path));
            let (mark, style) = if open { ("open    ", Style::Plain) } else { ("closed  ", Style::Dim) };
            let lead = Line::of(Style::Dim, mark).and(Style::Plain, &"  ".repeat(depth));
            lead.and(style, name).and(Style::Dim, words)
        };
        let mut rows = Vec::new();
        for section in &rendered.sections {
            let open = section.shown == Shown::Full;
            rows.push(row(&section.path, open, &format!("  {} bytes", section.text.len())));
            let inside = format!("{}.", section.path);
            let hidden = rendered.closed.iter().filter(|path| !open && path.starts_with(&inside));
            rows.extend(hidden.map(|path| row(path, false, "")));
        }
        if !rendered.closed.is_empty() {
            rows.push(Line::of(
                Style::Dim,
                "/sections KEY opens one; a key inside another is written with a dot",
            ));
        }
        Ok(rows)
    }

    /// Opens a section for the messages from now on.
    pub(super) fn open_section(&mut self, key: &str) -> Result<Vec<Line>, Failure> {
        let (settings, opened) = (self.with_prompt(), self.opened()?);
        let more = run::open_section(&settings, &opened, key).map_err(Failure::usage)?;
        let names = more.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        if let Some(prompt) = &mut self.prompt {
            prompt.opened.extend(more);
        }
        Ok(vec![Line::of(Style::Plain, &format!("{names}: open from the next message on"))])
    }

    fn with_prompt(&self) -> Settings {
        let settings = Settings::new("the next message", self.choice.name.clone(), &self.project.directory);
        Settings { prompt: self.prompt.clone(), ..settings }
    }

    /// What the model has opened so far.
    fn opened(&self) -> Result<BTreeSet<String>, Failure> {
        match &self.continues {
            Some(run) => Ok(run::conversation(&self.journal, run).map_err(Failure::failed)?.opened),
            None => Ok(BTreeSet::new()),
        }
    }
}
