//! Replies about the next message's context: what fills the model's context window, compaction, and the
//! sections of the prompt. The engine computes it; this module renders it as rows.

use std::collections::BTreeSet;

use fusee::engine::agent::PriorConversation;
use fusee::engine::model::tokens::Estimator;
use fusee::engine::prompt::{EnvironmentSnapshot, Outlined, SectionState};
use fusee::engine::run::{self, CarryOver, CompactionSavings};

use super::Chat;
use crate::process::error::CliError;
use crate::ui::format;
use crate::ui::line::{Style, StyledLine};

/// Cells of the longest bar.
const BAR: u64 = 20;

impl Chat<'_> {
    /// Token usage of the context window, by kind.
    pub(super) fn context(&self) -> Result<Vec<StyledLine>, CliError> {
        let Some(run) = &self.continues else {
            return Ok(vec![StyledLine::styled(Style::Dim, "the context window is empty: no messages yet")]);
        };
        let shares = run::context_window(&self.setup.journal, run).map_err(CliError::failed)?;
        let most = run::limits_for(&self.setup.resolved, self.setup.config.limits()).max_tokens;
        let all: u64 = shares.iter().map(|share| share.tokens).sum();
        let percent = |tokens: u64| format!("{:>3} %", tokens * 100 / most.max(1));
        let total = format!("about {} of {} tokens", format::tokens(all), format::tokens(most));
        let mut rows = vec![
            StyledLine::styled(Style::Bold, &total).and(Style::Dim, &format!(" ({})", percent(all).trim())),
        ];
        let largest = shares.iter().map(|share| share.tokens).max().unwrap_or_default().max(1);
        for share in shares {
            let cells = (share.tokens * BAR).div_ceil(largest) as usize;
            let bar = self.setup.ui_options.glyphs().full.repeat(cells);
            let figures = format!("{:>6}  {}  ", format::tokens(share.tokens), percent(share.tokens));
            let row = StyledLine::styled(Style::Plain, &figures).and(Style::Plain, &share.kind);
            let row = row.and(Style::Dim, &format!(" ({})  ", share.items));
            rows.push(row.and(Style::Accent, &bar));
        }
        if self.carry == CarryOver::Shortened {
            rows.push(StyledLine::styled(
                Style::Dim,
                "/compact is pending: the next message starts from a compacted conversation",
            ));
        }
        Ok(rows)
    }

    /// Compacts the conversation that the next message takes over.
    pub(super) fn compact(&mut self) -> Result<StyledLine, CliError> {
        let Some(run) = &self.continues else {
            return Ok(StyledLine::styled(Style::Dim, "nothing to compact: no messages yet"));
        };
        let limits = run::limits_for(&self.setup.resolved, self.setup.config.limits());
        match run::compaction_savings(&self.setup.journal, run, &limits).map_err(CliError::failed)? {
            None => {
                Ok(StyledLine::styled(Style::Dim, "nothing to compact: the conversation is already short"))
            }
            Some(CompactionSavings { before, after, .. }) => {
                self.carry = CarryOver::Shortened;
                let (before, after) = (format::tokens(before), format::tokens(after));
                let text = format!("messages shrink from {before} to {after} tokens with the next message");
                Ok(StyledLine::styled(Style::Plain, &text))
            }
        }
    }

    /// The sections of the prompt as a tree.
    pub(super) fn sections(&self) -> Result<Vec<StyledLine>, CliError> {
        let (environment, opened) = self.environment_and_sections()?;
        let settings = self.next_run("the next message".to_owned())?.spec;
        let outline = run::sections(&settings, &environment, &opened).map_err(CliError::usage)?;
        let mut rows: Vec<StyledLine> = outline.iter().map(section_row).collect();
        let closed = outline.iter().any(|section| section.state != SectionState::Open);
        rows.push(StyledLine::styled(
            Style::Dim,
            if closed {
                "/sections KEY opens a section; write nested keys with dots"
            } else {
                "all sections are open; skills and `--prompt FILE` add sections that open on demand"
            },
        ));
        Ok(rows)
    }

    /// Opens a section starting with the next message.
    pub(super) fn open_section(&mut self, key: &str) -> Result<Vec<StyledLine>, CliError> {
        let (environment, opened) = self.environment_and_sections()?;
        let settings = self.next_run("the next message".to_owned())?.spec;
        let more = run::open_section(&settings, &environment, &opened, key).map_err(CliError::usage)?;
        let names = more.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        match &mut self.prompt {
            Some(prompt) => prompt.opened.extend(more),
            None => self.opened.extend(more),
        }
        Ok(vec![StyledLine::styled(Style::Plain, &format!("{names}: open starting with the next message"))])
    }

    /// The environment as recorded by the conversation, and the sections opened so far.
    fn environment_and_sections(&self) -> Result<(EnvironmentSnapshot, BTreeSet<String>), CliError> {
        let earlier = match &self.continues {
            Some(run) => run::conversation(&self.setup.journal, run).map_err(CliError::failed)?,
            None => PriorConversation::default(),
        };
        let capture =
            || EnvironmentSnapshot::capture(&self.setup.project.directory, self.setup.journal.now_ms());
        Ok((earlier.environment.unwrap_or_else(capture), earlier.opened))
    }
}

fn section_row(section: &Outlined) -> StyledLine {
    let estimator = Estimator::default();
    let count = |text: &str| format::tokens(estimator.count(text.len()));
    let (mark, style, cost) = match section.state {
        SectionState::Open => ("open    ", Style::Plain, format!("{} tokens", count(&section.shown))),
        SectionState::Closed => (
            "closed  ",
            Style::Dim,
            format!("{} tokens, {} when opened", count(&section.shown), count(&section.whole)),
        ),
        SectionState::Behind => ("hidden  ", Style::Dim, format!("{} when opened", count(&section.whole))),
    };
    let name = section.path.rsplit('.').next().unwrap_or(&section.path);
    let lead = StyledLine::styled(Style::Dim, mark).and(Style::Plain, &"  ".repeat(section.depth));
    let row = lead.and(style, name).and(Style::Dim, &format!("  {cost}"));
    if section.title.eq_ignore_ascii_case(name) {
        row
    } else {
        row.and(Style::Dim, &format!(" · {}", section.title))
    }
}
