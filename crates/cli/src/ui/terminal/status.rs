//! The status line of a run: stage or phase, turn, context usage, cost so far and elapsed time.

use std::time::Duration;

use fusee::engine::journal::Event;
use fusee::engine::model::Usage;

use super::glyphs::Glyphs;
use crate::ui::line::{Style, StyledLine};
use crate::ui::{RunHeader, format};

/// Cells of the context usage bar.
const BAR: usize = 10;

/// Share of the context from which the bar is drawn as a warning.
const NEARLY_FULL: f64 = 0.8;

/// Maximum length of a stage's name, in characters.
const STAGE: usize = 24;

/// Minimum width that a stage's name is truncated to.
const SHORTEST: usize = 5;

/// Columns around a stage's name.
const LEAD: usize = 5;

/// Progress of a run.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// The current stage or phase, if any.
    part: Option<String>,
    turn: Option<u32>,
    tokens: u64,
    /// Limits in force, once a turn has started.
    max_turns: Option<u32>,
    max_tokens: Option<u64>,
    /// Usage of all turns so far.
    usage: Usage,
}

impl Status {
    /// Updates the progress from an event.
    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::TurnStart { turn_index, input_tokens, max_turns, max_input_tokens, .. } => {
                self.max_turns = max_turns.or(self.max_turns);
                self.max_tokens = max_input_tokens.or(self.max_tokens);
                (self.turn, self.tokens) = (Some(turn_index + 1), *input_tokens);
                self.usage.input_tokens += input_tokens;
            }
            Event::TurnComplete { output_tokens, cached_tokens, .. } => {
                self.usage.output_tokens += output_tokens;
                self.usage.cached_tokens += cached_tokens;
            }
            Event::Compaction { tokens_after, .. } => self.tokens = *tokens_after,
            Event::StageStarted { label, .. } => self.part = Some(format::one_line(label, STAGE)),
            Event::StageComplete { .. } => self.part = None,
            Event::PhaseState { phase, .. } | Event::PhaseTransition { to: phase, .. } => {
                self.part = Some(format::one_line(phase, STAGE));
            }
            _ => {}
        }
    }

    /// Renders the longest form of the line that fits.
    pub(super) fn line(
        &self,
        plan: &RunHeader,
        glyphs: &Glyphs,
        columns: usize,
        now: Duration,
    ) -> StyledLine {
        let part = self.part.as_deref().map(|part| format!("{part} · ")).unwrap_or_default();
        let (max_turns, max_tokens) =
            (self.max_turns.unwrap_or(plan.max_turns), self.max_tokens.unwrap_or(plan.max_tokens));
        let turn =
            self.turn.map_or_else(|| "starting · ".to_owned(), |turn| format!("turn {turn}/{max_turns} · "));
        let share = self.tokens as f64 / max_tokens.max(1) as f64;
        let full = ((share * BAR as f64).round() as usize).min(BAR);
        let bar = format!("{}{} ", glyphs.full.repeat(full), glyphs.empty.repeat(BAR - full));
        let bar_style = if share >= NEARLY_FULL { Style::Warning } else { Style::Accent };
        let tokens = format!("{}/{}", format::tokens(self.tokens), format::tokens(max_tokens));
        let cost = plan.price.map(|price| format!(" · {}", format::usd(price.cost_usd(&self.usage))));
        let cost = cost.unwrap_or_default();
        let elapsed =
            format::span(now.as_millis() as u64 / 1_000 * 1_000).replace(".0 s", " s").replace("0 ms", "0 s");
        let lead = || StyledLine::styled(Style::Accent, &format!("  {part}")).and(Style::Dim, &turn);
        let lead =
            || if part.is_empty() { StyledLine::styled(Style::Dim, &format!("  {turn}")) } else { lead() };
        let forms = [
            lead()
                .and(bar_style, &bar)
                .and(Style::Dim, &format!("{tokens} tokens{cost} · {elapsed} · ctrl-c cancels")),
            lead().and(bar_style, &bar).and(Style::Dim, &format!("{tokens} tokens{cost} · {elapsed}")),
            lead().and(Style::Dim, &format!("{tokens}{cost} · {elapsed}")),
        ];
        let fits = |form: &StyledLine| form.width() <= columns;
        forms.into_iter().find(fits).unwrap_or_else(|| self.brief(max_turns, share, &cost, &elapsed, columns))
    }

    /// The form for narrow terminals: all figures, and as much of the stage's name as fits.
    fn brief(&self, max_turns: u32, share: f64, cost: &str, elapsed: &str, columns: usize) -> StyledLine {
        let turn = self.turn.map(|turn| format!("{turn}/{max_turns} · ")).unwrap_or_default();
        let figures = format!("{turn}{:.0} %{cost} · {elapsed}", share * 100.0);
        let figures = StyledLine::styled(Style::Dim, &figures);
        let lead = match &self.part {
            Some(part) => {
                let room = columns.saturating_sub(figures.width() + LEAD).max(SHORTEST);
                StyledLine::styled(Style::Accent, &format!("  {part}")).cut(room + 2).and(Style::Dim, " · ")
            }
            None => StyledLine::styled(Style::Dim, "  "),
        };
        lead.join(figures).cut(columns)
    }
}
