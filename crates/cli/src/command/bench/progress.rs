//! Progress of a job: a block of lines at a terminal, a line per finished trial on a pipe, JSON on stdout if asked for.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Instant;

use fusee_bench::job::JobEvent;
use fusee_bench::results::TrialResult;

use super::show::verdict;
use crate::process::environment::Environment;
use crate::process::error::CliError;
use crate::process::stdio;
use crate::ui::format;

/// Running trials that are listed at a terminal.
const MAX_LISTED: usize = 12;

/// Progress of a job.
pub(super) struct Progress {
    total: usize,
    json: bool,
    live: bool,
    begun: Instant,
    running: VecDeque<(String, Instant)>,
    /// Trials that ended in this process.
    ended: usize,
    passed: usize,
    graded: usize,
    cost_usd: f64,
    /// Lines of the block that is on the screen.
    lines: usize,
    /// Trials that had a result before.
    earlier: Option<usize>,
}

impl Progress {
    pub(super) fn new(total: usize, json: bool, environment: &Environment) -> Self {
        Self {
            total,
            json,
            live: environment.terminals().stderr && environment.text("TERM") != Some("dumb"),
            begun: Instant::now(),
            running: VecDeque::new(),
            ended: 0,
            passed: 0,
            graded: 0,
            cost_usd: 0.0,
            lines: 0,
            earlier: None,
        }
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: &JobEvent<'_>) -> Result<(), CliError> {
        match event {
            JobEvent::Started { name } => self.running.push_back(((*name).to_owned(), Instant::now())),
            JobEvent::Waiting { count } => self.earlier = Some(self.total.saturating_sub(*count)),
            JobEvent::Finished { name, result } => {
                self.running.retain(|(running, _)| running != name);
                self.ended += 1;
                self.passed += usize::from(result.passed);
                self.graded += usize::from(result.is_graded());
                self.cost_usd += result.cost_usd.unwrap_or_default();
                if self.json {
                    stdio::print_json(&format!("{}\n", serde_json::to_string(result).unwrap_or_default()))?;
                }
                self.clear();
                if !self.json || self.live {
                    stdio::error(&self.line(name, result));
                }
            }
        }
        if self.live {
            self.clear();
            let block = self.block();
            self.lines = block.lines().count();
            stdio::error_styled(&block);
        }
        Ok(())
    }

    /// Removes the block from the screen.
    pub(super) fn clear(&mut self) {
        if self.lines > 0 {
            stdio::error_styled(&format!("\x1b[{}A\x1b[J", self.lines));
            self.lines = 0;
        }
    }

    fn line(&self, name: &str, result: &TrialResult) -> String {
        let done = self.earlier.unwrap_or_default() + self.ended;
        let cause = result.cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
        format!(
            "[{done}/{}] {} {name}{cause}: {}, {}, {}\n",
            self.total,
            verdict(result),
            if result.tries == 1 { "1 try".to_owned() } else { format!("{} tries", result.tries) },
            format::count(result.turns.into(), "turn"),
            format::span((1000.0 * result.seconds) as u64)
        )
    }

    fn block(&self) -> String {
        let mut text = String::new();
        for (name, since) in self.running.iter().take(MAX_LISTED) {
            let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            let _ = writeln!(text, "  {name}  {}", format::span(ms));
        }
        if self.running.len() > MAX_LISTED {
            let _ = writeln!(text, "  and {} more", self.running.len() - MAX_LISTED);
        }
        let done = self.earlier.unwrap_or_default() + self.ended;
        let rate = if self.graded == 0 { 0.0 } else { 100.0 * self.passed as f64 / self.graded as f64 };
        let _ = writeln!(
            text,
            "{done}/{} done, {rate:.0} % passed, {}{}",
            self.total,
            format::usd(self.cost_usd),
            self.time_left(done).map(|left| format!(", {left} left")).unwrap_or_default()
        );
        text
    }

    /// Estimate from the trials that ended in this process.
    fn time_left(&self, done: usize) -> Option<String> {
        let (ended, left) =
            (u32::try_from(self.ended).ok()?, u32::try_from(self.total.checked_sub(done)?).ok()?);
        let per_trial = self.begun.elapsed().checked_div(ended)?;
        Some(format::span(u64::try_from(per_trial.checked_mul(left)?.as_millis()).ok()?))
    }
}
