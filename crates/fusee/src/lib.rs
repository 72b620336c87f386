//! Runs LLM agents durably: every step of a run is journaled before its effect is visible, so a run can be
//! killed at any point and resumed, or replayed without the model.
//!
//! ```
//! use fusee::{Agent, Event, tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add {
//!     a: i64,
//!     b: i64,
//! }
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! # let directory = tempfile::tempdir()?;
//! # let script = directory.path().join("script.jsonl");
//! # let lines = r#"{"tool_calls":[{"name":"add","arguments":{"a":19,"b":23}}]}
//! # {"text":"It is 42."}"#;
//! # std::fs::write(&script, lines)?;
//! # let model = format!("script:{}", script.display());
//! # let workspace = directory.path();
//! // `model` is "openai:gpt-5", "anthropic:…", "ollama:…" or "script:FILE"; hosted ones need `.api_key(key)`.
//! let agent = Agent::builder(model)
//!     .workspace(workspace)
//!     .tool(tool("add", "Adds two numbers.", |Add { a, b }| async move { Ok(a + b) }))
//!     .build()?;
//! let mut run = agent.start("What is 19 + 23?").await?;
//! while let Some(event) = run.next().await {
//!     if let Event::ToolResult(result) = event {
//!         assert_eq!(result.content, "42");
//!     }
//! }
//! let outcome = run.outcome().await?;
//! assert_eq!(outcome.answer, "It is 42.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An [`Agent`] is a model, its tools, a workspace and a journal. It starts any number of [`Run`]s at once: a
//! request, a [workflow](Task::workflow) or a [template](Task::template). A run is a stream of [`Event`]s, and can
//! be cancelled, asked for its progress, and answered when a call [needs approval](Run::approve).
//! [`Agent::resume`] continues an interrupted run, [`Agent::replay`] checks a recorded one, and [`Agent::ask`]
//! returns an answer of your own type. [`AgentTask`] is one task of a [`Session`], with listeners by
//! event; a [`TaskRunner`] makes them from submissions.
//!
//! Tools are async functions of a typed argument ([`tool()`]) or implementations of [`tools::Tool`]; a model may be
//! any implementation of [`model::Model`].
//!
//! To let the model run commands, call [`init`] first thing in `main` and pass the result to
//! [`AgentBuilder::commands`]; commands then run in a sandbox. Without it every command is refused.
//!
//! The library prints nothing, reads no environment variables and knows no home directory: keys, paths and
//! variables are passed in. [`engine`] is what it is built on, for what it does not cover.

mod agent;
mod agent_task;
mod error;
mod event_emitter;
pub mod launch;
mod run;
mod session;
pub mod system;
mod task;
mod task_runner;
mod tool;

pub use agent::{Agent, AgentBuilder};
pub use agent_task::{AgentTask, ResponseItem, TaskState};
pub use error::Error;
pub use event_emitter::{CompactionEvent, EventEmitter, TaskError, TaskEvent, Turn, task_event};
pub use run::Run;
pub use session::{Session, TurnContext};
pub use task::Task;
pub use task_runner::{Submission, TaskRunner};
pub use tool::{Effects, FnTool, ToolError, tool};

/// Outcome of a run.
pub use fusee_engine::agent::TaskOutcome as Outcome;
pub use fusee_engine::agent::{Limits, ReviewPolicy};
pub use fusee_engine::approval::{ApprovalMode, Approver};
pub use fusee_engine::journal::event::{ErrorCode, Event, TaskComplete, TaskStatus};
pub use fusee_engine::journal::{EventRecord, Journal, JournalOptions, RunId};
pub use fusee_engine::model::{Model, RequestOptions, Wire};
pub use fusee_engine::run::{SandboxMode, SandboxOptions};
pub use fusee_engine::tools::ForkServer;
pub use fusee_engine::tools::sandbox::init;

/// The engine: everything this crate is built on.
pub use fusee_engine as engine;
pub use fusee_engine::{approval, journal, lang, model, prompt, template, text, tools, undo, workflow};
