//! The real binary, driven like a user would, against a scripted model, a scripted server and a hostile
//! machine.
//!
//! Each module is a behaviour. The test kit provides the environment (servers, projects, kills, event stream
//! checks); `support` here only starts the binary.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test panics when it fails, and does not go through the product's seams"
)]

mod acp;
mod acp_files;
mod acp_permissions;
mod acp_prompts;
mod acp_sessions;
mod agents;
mod answers;
mod answers_of_small_models;
mod approval_and_command_faults;
mod approvals;
mod architecture;
mod ask_user;
mod background;
mod bench;
mod bench_jobs;
mod bench_trials;
mod benchmark;
mod cancel;
mod chat_terminal;
mod check_and_fmt;
mod compacting;
mod completions;
mod computer;
mod continues;
mod conversation;
mod conversation_commands;
mod default_prompt;
mod delegation;
mod diagnostics;
mod direct;
mod discovery;
mod editors;
mod events;
mod exit_codes;
mod fault_matrix;
mod flow_kills;
mod flow_reports;
mod flow_table;
mod flows;
mod fork;
mod grammar_gates;
mod hook_examples;
mod hooks;
mod hostile_output;
mod http_faults;
mod http_model;
mod images;
mod journal_troubles;
mod kill_sweep;
mod loading;
mod manifests;
mod markdown_commands;
mod mcp;
mod mcp_calls;
mod mcp_deferred;
mod mcp_hostile;
mod mcp_http;
mod mcp_login;
mod mcp_server;
mod network;
mod output;
mod overflow;
mod patience;
mod phases;
mod process;
mod project_prompt;
mod prompt;
mod provider_tools;
mod replay;
mod rereads;
mod resume;
mod review;
mod rewind;
mod run_flags;
mod run_names;
mod run_task;
mod sandbox;
mod secrets;
mod sections;
#[cfg(feature = "serve")]
mod serve;
mod shipped_workflows;
mod silent_client;
mod small_models;
mod soak;
mod spec_sections;
mod specs;
mod stand_ins;
mod stopping;
mod subtasks;
mod support;
mod task_context;
mod task_files;
mod task_results;
mod task_system;
mod telemetry;
mod template_tasks;
mod templates;
mod terminal;
mod test_runners;
mod trust;
mod undo;
mod web_tools;
mod wire_formats;
mod workflow;
mod workflow_kills;
