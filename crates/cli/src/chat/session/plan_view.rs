//! Shows the chat's plan and lets the user edit it. The edited plan is part of the next message's settings,
//! so it is journaled and the model is told about it.

use std::io::Read as _;

use fusee::engine::agent::Plan;
use fusee::engine::run;

use super::Chat;
use crate::process::error::CliError;
use crate::ui::line::{Style, StyledLine};

/// Maximum number of bytes read from a plan file.
const MAX_BYTES: u64 = 64 * 1024;

impl Chat<'_> {
    /// The plan as rows.
    pub(super) fn plan(&self) -> Result<Vec<StyledLine>, CliError> {
        let mut rows = rows(&self.plan_now()?);
        if self.plan.is_some() {
            rows.push(StyledLine::styled(
                Style::Dim,
                "edited by you; sent to the model with the next message",
            ));
        }
        Ok(rows)
    }

    /// The text for the editor: the last edit if it could not be parsed, otherwise the plan.
    pub(crate) fn plan_text(&self) -> Result<String, CliError> {
        match &self.plan_draft {
            Some(draft) => Ok(draft.clone()),
            None => Ok(self.plan_now()?.written()),
        }
    }

    /// Replaces the plan with an edited text. A text with mistakes is kept for the next attempt.
    pub(crate) fn change_plan(&mut self, text: &str) -> Result<Vec<StyledLine>, CliError> {
        let before = self.plan_now()?;
        let plan = before.rewritten(text).map_err(|problems| {
            self.plan_draft = Some(text.to_owned());
            CliError::usage(format!("plan not changed: {}", problems.join("; ")))
                .help("run /plan edit to correct your text")
        })?;
        self.plan_draft = None;
        if plan == before {
            return Ok(vec![StyledLine::styled(Style::Dim, "plan unchanged")]);
        }
        self.plan = Some(plan);
        self.plan()
    }

    /// Replaces the plan with the content of a file in the project.
    pub(crate) fn change_plan_from(&mut self, file: &str) -> Result<Vec<StyledLine>, CliError> {
        let failed = |error: std::io::Error| CliError::usage(format!("cannot read {file}: {error}"));
        let opened = std::fs::File::open(self.setup.project.directory.join(file)).map_err(failed)?;
        let mut text = String::new();
        opened.take(MAX_BYTES).read_to_string(&mut text).map_err(failed)?;
        self.change_plan(&text)
    }

    fn plan_now(&self) -> Result<Plan, CliError> {
        match (&self.plan, &self.continues) {
            (Some(plan), _) => Ok(plan.clone()),
            (None, Some(run)) => {
                Ok(run::conversation(&self.setup.journal, run).map_err(CliError::failed)?.plan)
            }
            (None, None) => Ok(Plan::default()),
        }
    }
}

fn rows(plan: &Plan) -> Vec<StyledLine> {
    if plan.tasks().is_empty() {
        return vec![StyledLine::styled(Style::Dim, "no plan")];
    }
    plan.render().lines().map(|line| StyledLine::styled(Style::Plain, line)).collect()
}
