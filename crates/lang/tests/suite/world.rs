//! The environment of the examples and tests: tasks and tools with fixed answers, and a driver.
//!
//! This is a minimal driver: it resumes a machine with the answers and records every effect in order. The
//! engine's driver also journals the answers and runs branches concurrently.

use std::collections::HashMap;
use std::sync::Arc;

use fusee_lang::{
    Callable, Catalog, Compiled, EffectFailure, EffectKind, EvaluationLimits, FanOut, FileLoader, Machine,
    Param, ParamType, Program, ResumeInput, RuntimeError, Status, TaskCall, TaskResult, TaskTarget,
    ToolEffect, Value, Yield, compile,
};
use fusee_text::Source;
use serde_json::{Map as JsonMap, Value as Json, json};

/// The available tasks and tools.
pub(crate) fn catalog() -> Catalog {
    let text = |name: &str| Param::required(name, ParamType::String);
    let mut catalog = Catalog::new();
    catalog.add(Callable::task("echo", [text("text")]));
    catalog.add(Callable::task("summarize", [text("text"), Param::optional("style", ParamType::String)]));
    catalog.add(Callable::task("score", [text("text")]));
    catalog.add(Callable::task("broken", [text("why")]));
    catalog.add(Callable::task("flaky", [text("key"), Param::required("fails", ParamType::Number)]));
    catalog.add(Callable::tool("read_files", [Param::required("paths", ParamType::Array)]));
    catalog.alias("system:read_files", "read_files");
    catalog.add(Callable::tool("run_script", [text("command")]));
    catalog.alias("system:run_script", "run_script");
    catalog
}

/// State of one run.
#[derive(Default)]
pub(crate) struct World {
    /// Every effect, one line each.
    pub(crate) effects: Vec<String>,
    /// Number of calls of `flaky` by key.
    pub(crate) flaky: HashMap<String, i64>,
    /// Files that can be loaded.
    pub(crate) files: HashMap<String, String>,
    /// Number of pauses of the machine.
    pub(crate) pauses: usize,
}

impl FileLoader for World {
    fn load(&mut self, _from: &Source, path: &str) -> Result<Source, String> {
        match self.files.get(path) {
            Some(text) => Ok(Source::new(path, text.as_str())),
            None => Err("no such file".to_owned()),
        }
    }
}

/// Result of running a program.
pub(crate) type Outcome = Result<Value, Box<RuntimeError>>;

impl World {
    pub(crate) fn compile(&mut self, text: &str) -> Compiled {
        compile(&Source::new("example.fusee", text), &catalog(), self)
    }

    /// Runs a program to completion.
    pub(crate) fn run(
        &mut self,
        program: &Arc<Program>,
        inputs: &JsonMap<String, Json>,
        limits: EvaluationLimits,
    ) -> Outcome {
        let machine =
            Machine::start(program, inputs, limits).unwrap_or_else(|problems| panic!("{problems:?}"));
        self.drive(machine, "")
    }

    /// Resumes a machine until it is done.
    pub(crate) fn drive(&mut self, mut machine: Machine, branch: &str) -> Outcome {
        let mut input = ResumeInput::Go;
        loop {
            let effect = match machine.resume(input) {
                Yield::Done(value) => return Ok(value),
                Yield::Fault(fault) => return Err(fault),
                Yield::Pause => {
                    self.pauses += 1;
                    input = ResumeInput::Go;
                    continue;
                }
                Yield::Effect(effect) => effect,
            };
            let line = describe(&effect.kind);
            self.effects.push(format!("{branch}{line}"));
            input = self.answer(effect.kind, branch);
        }
    }

    pub(crate) fn answer(&mut self, kind: EffectKind, branch: &str) -> ResumeInput {
        match kind {
            EffectKind::Task(call) => self.task(&call),
            EffectKind::Tool(call) => tool(&call),
            EffectKind::Context(query) => {
                let summary =
                    format!("context for {}", query.get("query").and_then(Json::as_str).unwrap_or("?"));
                let matches = json!([{ "path": "src/lib.rs", "score": 0.9, "reason": "name" }]);
                ResumeInput::Json(json!({ "summary": summary, "matches": matches }))
            }
            EffectKind::FanOut(fan_out) => self.fan_out(&fan_out, branch),
            EffectKind::AskUser { question } if question.contains("no user") => {
                ResumeInput::Failed(EffectFailure {
                    kind: "TASK_FAILURE".into(),
                    reason: Some("tool_execution_error".into()),
                    message: "no user is available to answer".into(),
                    cause: None,
                })
            }
            EffectKind::AskUser { question } => ResumeInput::Json(json!(format!("answer to {question}"))),
            EffectKind::Log { .. } | EffectKind::Wait { .. } => ResumeInput::Go,
            EffectKind::EnterLimits { .. } | EffectKind::LeaveLimits { .. } => ResumeInput::Go,
        }
    }

    /// Runs branches sequentially, which a program cannot distinguish from concurrent execution.
    fn fan_out(&mut self, fan_out: &FanOut, branch: &str) -> ResumeInput {
        let mut values = Vec::new();
        for index in 0..fan_out.len() {
            let machine = fan_out.machine(index).expect("within its length");
            match self.drive(machine, &format!("{branch}{index}/")) {
                Ok(value) => values.push(value),
                Err(fault) => return ResumeInput::BranchFailed(fault),
            }
        }
        ResumeInput::Branches(values)
    }

    fn task(&mut self, call: &TaskCall) -> ResumeInput {
        let input = |name: &str| match call.inputs.get(name) {
            Some(Json::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let reply = match (&call.target, call.callee()) {
            (TaskTarget::Atom(atom), _) => {
                let mut text = atom.instructions.clone();
                for (name, value) in &call.inputs {
                    let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    text = text.replace(&format!("{{{{{name}}}}}"), &shown);
                }
                TaskResult::complete(text)
            }
            (TaskTarget::Described(words), _) => TaskResult::complete(format!("did: {words}")),
            (_, "echo") => TaskResult::complete(input("text")),
            (_, "summarize") => TaskResult::complete(format!("summary of {}", input("text"))),
            (_, "score") => {
                let data = json!({ "score": input("text").chars().count() });
                TaskResult { parsed_content: Some(data.clone()), ..TaskResult::complete(data.to_string()) }
            }
            (_, "flaky") => {
                let times = self.flaky.entry(input("key")).or_default();
                *times += 1;
                let fails = call.inputs.get("fails").and_then(Json::as_i64).unwrap_or(0);
                if *times <= fails {
                    failed(&format!("attempt {times}"))
                } else {
                    TaskResult::complete(format!("attempt {times}"))
                }
            }
            _ => failed(&input("why")),
        };
        ResumeInput::Reply(reply)
    }
}

fn failed(why: &str) -> TaskResult {
    let error = json!({
        "type": "TASK_FAILURE", "reason": "llm_error", "message": why,
        "cause": { "type": "TASK_FAILURE", "reason": "tool_execution_error", "message": "the cable is cut" },
    });
    let notes = json!({ "error": error }).as_object().cloned().unwrap_or_default();
    TaskResult { status: Status::Failed, content: "partial".into(), parsed_content: None, notes }
}

fn tool(call: &ToolEffect) -> ResumeInput {
    let reply = match &*call.name {
        "read_files" => {
            let paths = call.arguments.get("paths").and_then(Json::as_array).cloned().unwrap_or_default();
            let texts: Vec<String> =
                paths.iter().map(|path| format!("text of {}", path.as_str().unwrap_or("?"))).collect();
            TaskResult::complete(texts.join("\n"))
        }
        _ => {
            let command = call.arguments.get("command").and_then(Json::as_str).unwrap_or("");
            let code = i64::from(command.contains("false"));
            let notes = json!({ "exit_code": code, "stdout": format!("ran {command}\n"), "stderr": "" });
            let status = if code == 0 { Status::Complete } else { Status::Failed };
            let notes = notes.as_object().cloned().unwrap_or_default();
            TaskResult { status, content: format!("ran {command}\n"), parsed_content: None, notes }
        }
    };
    ResumeInput::Reply(reply)
}

/// Describes an effect in one line.
pub(crate) fn describe(kind: &EffectKind) -> String {
    let object = |map: &JsonMap<String, Json>| Json::Object(map.clone()).to_string();
    match kind {
        EffectKind::Task(call) => {
            let how = match (&call.target, call.form) {
                (_, fusee_lang::CallForm::Spawn) => "spawn",
                (TaskTarget::Atom(_), _) => "atom",
                (TaskTarget::Described(_), _) => "described",
                (TaskTarget::Named(_), _) => "task",
            };
            let settings =
                if call.settings.is_empty() { String::new() } else { format!(" {}", object(&call.settings)) };
            format!("{how} {} {}{settings}", call.callee(), object(&call.inputs))
        }
        EffectKind::Tool(call) => format!("tool {} {}", call.name, object(&call.arguments)),
        EffectKind::Context(query) => format!("context {}", object(query)),
        EffectKind::FanOut(fan_out) => match fan_out.limit() {
            Some(limit) => format!("fan out {} at most {limit}", fan_out.len()),
            None => format!("fan out {}", fan_out.len()),
        },
        EffectKind::AskUser { question } => format!("ask {question}"),
        EffectKind::Log { message } => format!("log {message}"),
        EffectKind::Wait { seconds } => format!("wait {seconds}"),
        EffectKind::EnterLimits { limits, .. } => {
            format!("enter limits {}", serde_json::to_string(limits).unwrap_or_default())
        }
        EffectKind::LeaveLimits { .. } => "leave limits".to_owned(),
    }
}
