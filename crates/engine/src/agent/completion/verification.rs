//! Applies the rules of a flow in the driver: whether a call may run, whether the task may end, and whether
//! the work is verified. `flow` defines the rules.

use fusee_journal::event::CallFate;
use fusee_journal::{RunAborted, StepKind};
use fusee_model::{AllowedOutput, AllowedTool, RequestOptions, ToolCall};
use fusee_tools::ToolOutput;
use serde_json::{Value, json};

use crate::agent::completion::runtime_actions::EDIT_REFUSED;
use crate::agent::conversation::sectioned_prompt::RenderedPrompt;
use crate::agent::flow::{Feedback, FlowEditFormat, ToolRef};
use crate::agent::machine::{CallResults, TaskEnd};
use crate::agent::model_request::grammar_constraints::AllowedPaths;
use crate::agent::runner::TaskRunner;
use crate::agent::tool_calls::CallRoute;
use crate::agent::tool_calls::control_tools;
use crate::agent::tool_calls::tool_executor::ToolExecutor;

/// Maximum characters of the verification output shown, counted from the end.
const VERIFY_TAIL: usize = 4000;

/// Number of last lines shown when a failure is repeated without a file change in between.
const VERIFY_LINES: usize = 8;

/// The last result of the verification command, and the file state it applies to.
#[derive(Debug, Default)]
pub(crate) struct VerificationResult {
    /// The verified file state; `None` before the first run.
    about: Option<u64>,
    /// The file state whose result the model has been told.
    told: Option<u64>,
    passed: bool,
    tail: String,
    runs: u32,
}

/// How to treat the files changed by a command of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileEffects {
    /// Part of the work.
    Counted,
    /// Side effects of a check, such as caches and logs.
    Forgotten,
}

impl TaskRunner<'_> {
    /// Whether a tool may be called now.
    pub(crate) fn open(&self, name: &str) -> Result<(), Feedback> {
        let session = self.session();
        let control = control_tools::definitions().iter().find(|definition| definition.name == name);
        let tool = session.toolbox.find(name).map(|tool| tool.definition());
        // Unknown tools are answered later, with suggestions for similar names.
        let Some(definition) = control.or(tool) else { return Ok(()) };
        if name == "flow_stage_done" && !self.conduct.offers(definition) {
            return Ok(());
        }
        let offered = session.definitions().filter(|definition| self.conduct.offers(definition));
        self.conduct.judge(ToolRef::of(definition), offered, self.progress())
    }

    /// Options of the next request. With a gate or a grammar, they list the currently open tools: under a
    /// grammar, a call that would be refused cannot even be generated.
    pub(crate) fn options_now(&self) -> RequestOptions {
        let session = self.session();
        let mut options = session.options.clone();
        if self.conduct.is_gated() || self.files.is_some() {
            let offered = session.definitions().filter(|definition| self.conduct.offers(definition));
            let offered = self.narrow_tools(offered.collect());
            let open = self.conduct.open_among(offered.into_iter(), self.progress());
            let sections = self.shown.iter().flat_map(RenderedPrompt::openers).map(str::to_owned);
            let ending = self.can_finish();
            let names = open.map(str::to_owned).chain(sections).filter(|name| ending || name != "finish");
            let tools = names.filter_map(|name| self.open_tool(name)).collect();
            options.open = Some(AllowedOutput { tools, answer: ending });
        }
        options
    }

    fn open_tool(&self, name: String) -> Option<AllowedTool> {
        let paths = match self.paths_of(&name) {
            AllowedPaths::Free => Vec::new(),
            AllowedPaths::Among(paths) => paths,
            AllowedPaths::None => return None,
        };
        Some(AllowedTool { bare: self.is_bare(&name), name, paths })
    }

    /// Whether the model may claim to be done: no rule forbids it and the current file state has not failed
    /// verification.
    pub(crate) fn can_finish(&self) -> bool {
        let found_wrong = self.evidence.about == Some(self.facts.state()) && !self.evidence.passed;
        self.conduct.may_end(self.progress()).is_ok() && !found_wrong
    }

    /// Handles the model's signal that its stage is done.
    pub(crate) fn stage_signal(&mut self, arguments: Value) -> CallRoute {
        let known = crate::agent::flow::Progress { facts: &self.facts, plan: &self.plan };
        match self.conduct.signal(arguments, known) {
            Ok(output) => CallRoute::Control { output, finish: None },
            Err(Feedback { text, sort }) => CallRoute::Answer { output: ToolOutput::error(text), sort },
        }
    }

    /// Whether `finish` is allowed: always to report a blocker, otherwise only when the work is verified.
    pub(crate) fn may_finish(&self, arguments: &Value) -> bool {
        arguments["status"] == "blocked" || self.unfinished_reason().is_none()
    }

    /// The result of a premature `finish`.
    pub(crate) fn finish_rejection(&self) -> CallRoute {
        let Feedback { text, sort } = self
            .unfinished_reason()
            .unwrap_or(Feedback { text: "The task is not done yet.".to_owned(), sort: "early_end" });
        CallRoute::Answer { output: ToolOutput::error(text), sort }
    }

    fn unfinished_reason(&self) -> Option<Feedback> {
        self.conduct.may_end(self.progress()).err().or_else(|| self.verification_failure())
    }

    fn verification_failure(&self) -> Option<Feedback> {
        let command = self.task.rules.verify.as_deref()?;
        if self.evidence.about == Some(self.facts.state()) && self.evidence.passed {
            return None;
        }
        let tail = &self.evidence.tail;
        let text = if self.evidence.told == Some(self.facts.state()) {
            format!(
                "The work is still not done: no file has changed since `{command}` failed, and words alone change \
                 none.\n\n{}",
                last_lines(tail, VERIFY_LINES)
            )
        } else {
            format!("The work is not done: `{command}` does not pass.\n\n{tail}")
        };
        Some(Feedback {
            text: format!("{}{}", text.trim_end(), self.failure_advice()),
            sort: "verify_failed",
        })
    }

    /// Advice on a failure. It is appended last because small models follow the last instruction best.
    fn failure_advice(&self) -> &'static str {
        match self.task.rules.edit_format {
            _ if self.task.rules.one_answer => "",
            FlowEditFormat::Tools => "\n\nFind out why, and call a tool that changes what is wrong.",
            FlowEditFormat::Whole | FlowEditFormat::Blocks => "\n\nFind out why, and change what is wrong.",
        }
    }

    /// Like [`Self::verification_failure`], and records that the model has been told.
    fn report_verification(&mut self) -> Option<Feedback> {
        let feedback = self.verification_failure();
        self.evidence.told = self.evidence.about;
        feedback
    }

    /// Unmet requirements of a task that ended. A verified task need not have signalled completion.
    pub(crate) fn lacks(&self) -> Vec<String> {
        let known = self.progress();
        let verified = self.task.rules.verify.is_some() && self.verification_failure().is_none();
        if verified { self.conduct.unmet(known) } else { self.conduct.lacks(known) }
    }

    /// Verifies the current files before a `finish` is judged.
    pub(crate) async fn verify_before_finish(&mut self, call: &ToolCall) -> Result<(), RunAborted> {
        if call.name == "finish" && self.conduct.may_end(self.progress()).is_ok() {
            self.verify().await?;
        }
        Ok(())
    }

    /// Why a reply without calls must not end the task, if that is so.
    pub(crate) async fn held_back(&mut self) -> Result<Option<Feedback>, RunAborted> {
        let refused = self.take_edits().await?;
        // A refused edit, for instance of a protected test, does not invalidate verified work.
        let verifiable = self.task.rules.verify.is_some() && self.facts.has_changes();
        if refused.as_ref().is_some_and(|feedback| !verifiable || feedback.sort != EDIT_REFUSED) {
            return Ok(refused);
        }
        if let Err(feedback) = self.conduct.may_end(self.progress()) {
            return Ok(Some(feedback));
        }
        self.verify().await?;
        Ok(match (refused, self.report_verification()) {
            (Some(refused), Some(failed)) => {
                Some(Feedback { text: format!("{}\n\n{}", refused.text, failed.text), ..failed })
            }
            (_, failed) => failed,
        })
    }

    /// After the calls of a turn: verifies changed files and returns the end of the task, if the calls ended
    /// it.
    pub(crate) async fn settled(&mut self, answered: &CallResults) -> Result<Option<TaskEnd>, RunAborted> {
        if answered.aborted {
            return Ok(None);
        }
        if let Some(answer) = self.conduct.is_over(self.progress()) {
            let answer = if answer.trim().is_empty() { self.turns.answer.clone() } else { answer };
            return Ok(Some(TaskEnd::Completed { answer }));
        }
        if self.task.rules.verify.is_none()
            || !(self.facts.has_changes() || self.facts.idle_write)
            || answered.finished.is_some()
            || self.evidence.about == Some(self.facts.state())
        {
            return Ok(None);
        }
        self.verify().await?;
        let known = self.progress();
        // Before any change, a passing command says nothing about the work.
        let may_end = self.facts.has_changes()
            && self.conduct.may_end(known).is_ok()
            && self.conduct.unmet(known).is_empty();
        match self.report_verification() {
            None if may_end => {
                let command = self.task.rules.verify.as_deref().unwrap_or_default();
                let answer = match self.turns.answer.trim() {
                    "" => format!("Done: `{command}` passes."),
                    said => said.to_owned(),
                };
                Ok(Some(TaskEnd::Completed { answer }))
            }
            None => Ok(None),
            Some(Feedback { text, sort }) => {
                self.facts.fed_back(sort);
                self.say(&text);
                Ok(None)
            }
        }
    }

    /// Runs the verification command, unless it has already run for the current file state.
    async fn verify(&mut self) -> Result<(), RunAborted> {
        let Some(command) = self.task.rules.verify.clone() else { return Ok(()) };
        let about = self.facts.state();
        if self.evidence.about == Some(about) {
            return Ok(());
        }
        self.evidence.runs += 1;
        let id = format!("verify-{}", self.evidence.runs);
        let output = self.run_command(&id, &command, FileEffects::Forgotten).await?;
        self.evidence.about = Some(about);
        self.evidence.passed = output.ok;
        self.evidence.tail = tail(&output.content);
        self.facts.verified(&command, output.ok);
        Ok(())
    }

    /// Verifies the files before the first change. Returns the failure as text; `None` if the command passes.
    pub(crate) async fn initial_failure(&mut self) -> Result<Option<String>, RunAborted> {
        self.verify().await?;
        let Some(command) = self.task.rules.verify.as_deref().filter(|_| !self.evidence.passed) else {
            return Ok(None);
        };
        self.evidence.told = self.evidence.about;
        Ok(Some(format!("`{command}` does not pass yet:\n\n{}", self.evidence.tail.trim())))
    }

    /// Call executor for the runtime's own calls.
    pub(crate) fn runtime_executor(&self) -> ToolExecutor<'_> {
        ToolExecutor { kind: StepKind::Environment, image_bytes: 0, ..self.calling() }
    }

    /// Runs a command of the runtime: sandboxed, as a step, reported in the events, and not counted as a call
    /// of the model.
    pub(crate) async fn run_command(
        &mut self,
        id: &str,
        command: &str,
        traces: FileEffects,
    ) -> Result<ToolOutput, RunAborted> {
        let arguments = json!({ "command": command });
        let call = ToolCall { id: id.to_owned(), name: "shell".to_owned(), arguments: arguments.to_string() };
        let Some(tool) = self.session().toolbox.find("shell").cloned() else {
            return Ok(ToolOutput::error("There is no shell to run it with."));
        };
        self.emit_call(&call);
        if let Some(refusal) = self.gate(&call, &*tool, &arguments).await? {
            self.emit_result(&call, &refusal, 0);
            return Ok(refusal.output);
        }
        let (mut called, mut recorded) =
            self.runtime_executor().make(&call.id, &tool, arguments.clone()).await?;
        self.passed(&recorded);
        self.session().workspace.record_output(&called.output);
        if called.fate == Some(CallFate::Interrupted) {
            if traces == FileEffects::Counted {
                self.facts.changed_by_runtime(&called.output);
            }
            // These commands are checks, so an interrupted one can be repeated.
            (called, recorded) = self.runtime_executor().make(&call.id, &tool, arguments).await?;
            self.passed(&recorded);
            self.session().workspace.record_output(&called.output);
        }
        match traces {
            FileEffects::Counted => {
                self.facts.commands = true;
                self.facts.changed_by_runtime(&called.output);
                self.known.learn(&called.output);
            }
            FileEffects::Forgotten => called.output.changed.clear(),
        }
        self.emit_result(&call, &called, recorded.duration_ms);
        Ok(called.output)
    }
}

fn tail(text: &str) -> String {
    let count = text.chars().count();
    if count <= VERIFY_TAIL {
        return text.to_owned();
    }
    let rest: String = text.chars().skip(count - VERIFY_TAIL).collect();
    format!("[…]\n{rest}")
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
