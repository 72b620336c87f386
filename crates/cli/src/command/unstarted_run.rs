//! Output of a run that could not start. With `--json`, readers see a start and a failed end whatever happens; in
//! benchmark mode they see the line of a failed try.

use fusee::engine::journal::event::{
    ErrorCode, ErrorDetail, Event, TaskComplete, TaskStarted, TaskStatus, TurnType,
};
use fusee::engine::journal::{Branch, Clock as _, EventRecord, RunId};
use fusee::engine::run::ExitStatus;
use fusee::system::{self, SystemClock};

use crate::process::error::CliError;
use crate::process::stdio;
use crate::ui::benchmark;

/// A run as far as its command line describes it.
pub(crate) struct UnstartedRun {
    pub(crate) id: Option<RunId>,
    pub(crate) request: String,
    pub(crate) model: String,
    pub(crate) turn_type: TurnType,
    /// Number of the try, if the benchmark line is printed instead of events.
    pub(crate) benchmark_try: Option<u32>,
}

impl UnstartedRun {
    /// Prints what readers of stdout expect of a run that failed before it started.
    pub(crate) fn report(self, failure: &CliError) -> Result<(), CliError> {
        let Self { id, request, model, turn_type, benchmark_try } = self;
        let message = failure.headline.clone().unwrap_or_else(|| failure.message.trim_end().to_owned());
        if let Some(attempt) = benchmark_try {
            return stdio::print(&format!("{}\n", benchmark::failed_line(attempt, &message)));
        }
        let run = id.map_or_else(system::new_run_id, Ok).map_err(CliError::failed)?;
        let reason = failure.reason.unwrap_or(match failure.exit {
            ExitStatus::Usage => "configuration_error",
            _ => "unexpected_error",
        });
        let error = ErrorDetail { code: ErrorCode::InitFailed, reason: reason.to_owned(), message };
        let (submission_id, ts_ms) = (run.to_string(), SystemClock.now_ms());
        let started = TaskStarted {
            submission_id: submission_id.clone(),
            turn_type,
            timestamp: ts_ms,
            request,
            model,
            sandbox: "none".to_owned(),
            parent: None,
            continues: None,
        };
        let complete = TaskComplete {
            submission_id,
            total_turns: 0,
            total_tokens: 0,
            cached_tokens: 0,
            duration_ms: 0,
            cost_usd: None,
            status: TaskStatus::Failed,
            answer: String::new(),
            error: Some(error.clone()),
        };
        let events = [
            Event::TaskStarted(started),
            Event::Error { code: error.code, message: error.message },
            Event::TaskComplete(complete),
        ];
        for (seq, event) in (1..).zip(events) {
            let record = EventRecord { seq, ts_ms, run: run.clone(), task: Branch::main(), event };
            stdio::print(&format!("{}\n", serde_json::to_string(&record).unwrap_or_default()))?;
        }
        Ok(())
    }
}
