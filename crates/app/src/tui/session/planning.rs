//! The plan of the conversation, shown and changed by the person. What they leave is part of the next message's
//! settings, so it is in the journal and the model is told of it.

use std::io::Read as _;

use fusee_engine::agent::Plan;
use fusee_engine::run;

use super::Session;
use crate::face::line::{Line, Style};
use crate::failure::Failure;

/// A longer file is no plan.
const MOST_BYTES: u64 = 64 * 1024;

impl Session<'_> {
    /// The plan, for people.
    pub(super) fn plan(&self) -> Result<Vec<Line>, Failure> {
        let mut rows = rows(&self.plan_now()?);
        if self.plan.is_some() {
            rows.push(Line::of(Style::Dim, "as you changed it: the model is told with the next message"));
        }
        Ok(rows)
    }

    /// What an editor is given: what was written last and could not be understood, else the plan.
    pub(crate) fn plan_text(&self) -> Result<String, Failure> {
        match &self.plan_draft {
            Some(draft) => Ok(draft.clone()),
            None => Ok(self.plan_now()?.written()),
        }
    }

    /// Takes the plan as it was edited. One with mistakes is kept for the next try.
    pub(crate) fn change_plan(&mut self, text: &str) -> Result<Vec<Line>, Failure> {
        let before = self.plan_now()?;
        let plan = before.rewritten(text).map_err(|problems| {
            self.plan_draft = Some(text.to_owned());
            Failure::usage(format!("the plan is as it was: {}", problems.join("; ")))
                .help("/plan edit has what you wrote")
        })?;
        self.plan_draft = None;
        if plan == before {
            return Ok(vec![Line::of(Style::Dim, "the plan is as it was")]);
        }
        self.plan = Some(plan);
        self.plan()
    }

    /// The same from a file of the project.
    pub(crate) fn change_plan_from(&mut self, file: &str) -> Result<Vec<Line>, Failure> {
        let failed = |error: std::io::Error| Failure::usage(format!("cannot read {file}: {error}"));
        let opened = std::fs::File::open(self.project.directory.join(file)).map_err(failed)?;
        let mut text = String::new();
        opened.take(MOST_BYTES).read_to_string(&mut text).map_err(failed)?;
        self.change_plan(&text)
    }

    fn plan_now(&self) -> Result<Plan, Failure> {
        match (&self.plan, &self.continues) {
            (Some(plan), _) => Ok(plan.clone()),
            (None, Some(run)) => Ok(run::conversation(&self.journal, run).map_err(Failure::failed)?.plan),
            (None, None) => Ok(Plan::default()),
        }
    }
}

fn rows(plan: &Plan) -> Vec<Line> {
    if plan.tasks().is_empty() {
        return vec![Line::of(Style::Dim, "there is no plan")];
    }
    plan.render().lines().map(|line| Line::of(Style::Plain, line)).collect()
}
