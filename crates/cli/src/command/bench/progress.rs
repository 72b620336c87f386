//! Progress of a job: a block of lines at a terminal, redrawn every second; a line per finished trial on a pipe; JSON on
//! stdout if asked for.

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
use crate::ui::terminal::size_of_stderr;

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
    /// Cost so far, if a price is known.
    cost_usd: Option<f64>,
    /// Lines of the block that is on the screen.
    lines: usize,
    /// Trials that had a result before.
    earlier: Option<usize>,
    /// Whether unknown prices are still to be told, because the job has a budget.
    budget: bool,
}

impl Progress {
    pub(super) fn new(total: usize, json: bool, budget: bool, environment: &Environment) -> Self {
        Self {
            total,
            json,
            live: environment.terminals().stderr && environment.text("TERM") != Some("dumb"),
            begun: Instant::now(),
            running: VecDeque::new(),
            ended: 0,
            passed: 0,
            graded: 0,
            cost_usd: None,
            lines: 0,
            earlier: None,
            budget,
        }
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: &JobEvent<'_>) -> Result<(), CliError> {
        match event {
            JobEvent::Started { name } => self.running.push_back(((*name).to_owned(), Instant::now())),
            JobEvent::Tick => {}
            JobEvent::Waiting { count } => self.earlier = Some(self.total.saturating_sub(*count)),
            JobEvent::Finished { name, result } => {
                self.running.retain(|(running, _)| running != name);
                self.ended += 1;
                self.passed += usize::from(result.passed);
                self.graded += usize::from(result.is_graded());
                if let Some(cost) = result.cost_usd {
                    *self.cost_usd.get_or_insert_default() += cost;
                }
                if self.json {
                    stdio::print_json(&format!("{}\n", serde_json::to_string(result).unwrap_or_default()))?;
                }
                self.clear();
                if !self.json || self.live {
                    stdio::error(&self.line(name, result));
                }
                if self.budget && result.cost_usd.is_none() && result.tokens > 0 {
                    self.budget = false;
                    stdio::error(&format!(
                        "warning: the price of {} is not known, so its trials do not count towards --budget-usd\n",
                        result.model
                    ));
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
        let message = match (&result.message, result.is_graded()) {
            (Some(message), false) => format!(": {}", message.lines().next().unwrap_or_default()),
            _ => String::new(),
        };
        // At a terminal, the block says this.
        let totals = if self.live { String::new() } else { format!("; {}", self.totals(done)) };
        format!(
            "[{done}/{}] {} {name}{cause}: {}, {}, {}{totals}{message}\n",
            self.total,
            verdict(result),
            if result.tries == 1 { "1 try".to_owned() } else { format!("{} tries", result.tries) },
            format::count(result.turns.into(), "turn"),
            format::span((1000.0 * result.seconds) as u64)
        )
    }

    /// Passed trials, cost and estimated time left.
    fn totals(&self, done: usize) -> String {
        let rate = if self.graded == 0 { 0.0 } else { 100.0 * self.passed as f64 / self.graded as f64 };
        let left = self.time_left(done).map(|left| format!(", {left} left")).unwrap_or_default();
        let cost = self.cost_usd.map(|cost| format!(", {}", format::usd(cost))).unwrap_or_default();
        format!("{rate:.0} % passed{cost}{left}")
    }

    fn block(&self) -> String {
        let (columns, rows) = size_of_stderr();
        let listed = rows.saturating_sub(3).clamp(1, MAX_LISTED);
        let mut text = String::new();
        for (name, since) in self.running.iter().take(listed) {
            let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            let _ = writeln!(text, "  {name}  {}", format::span(ms));
        }
        if self.running.len() > listed {
            let _ = writeln!(text, "  and {} more", self.running.len() - listed);
        }
        let done = self.earlier.unwrap_or_default() + self.ended;
        let _ = writeln!(text, "{done}/{} done, {}", self.total, self.totals(done));
        // A line that wraps would be two rows, of which only one is removed.
        let fitting = |line: &str| -> String {
            let shown = line.chars().filter(|c| !c.is_control());
            shown.take(columns.saturating_sub(1).max(1)).collect()
        };
        text.lines().map(|line| fitting(line) + "\n").collect()
    }

    /// Estimate from the trials that ended in this process.
    fn time_left(&self, done: usize) -> Option<String> {
        let (ended, left) =
            (u32::try_from(self.ended).ok()?, u32::try_from(self.total.checked_sub(done)?).ok()?);
        let per_trial = self.begun.elapsed().checked_div(ended)?;
        Some(format::span(u64::try_from(per_trial.checked_mul(left)?.as_millis()).ok()?))
    }
}
