//! The keys of flows: how a task is worked through, what requests contain, what the runtime does itself. They
//! are part of the same files as all other keys; `stages.rs` reads the list of stages.

use super::key::{Key, key, whole};
use super::value::Kind;

const MANY: u64 = u32::MAX as u64;

/// Word lists used by more than one key.
const HISTORY_MODES: Kind = Kind::Word(&["full", "tail"]);
const EDIT_FORMATS: Kind = Kind::Word(&["tools", "whole", "blocks"]);

/// Flow keys, in display order.
pub(super) const FLOW_KEYS: &[Key] = &[
    key(
        "task_flow_mode",
        Kind::Word(&["auto", "flat", "staged", "staged3", "branched", "direct"]),
        Some("auto"),
        "How to work through a task: auto (flat, or for a small model the flow that suits the request), flat (one session), staged (explore, plan, implement, with gated tools), staged3 (the \
         same as three sub-runs), branched (a plan, then one sub-run per planned task), direct (the runtime reads and \
         verifies, the model answers with the new file).",
    )
    .flag("--flow"),
    key("task_branching", Kind::Switch, Some("false"), "Same as task_flow_mode = \"branched\"."),
    key(
        "flow",
        Kind::Stages,
        None,
        "Custom stages, in order, used instead of task_flow_mode: id, label, prompt and other stage keys.",
    ),
    key(
        "task_plan_mode",
        Kind::Word(&["first", "explore", "none"]),
        Some("explore"),
        "Tools available before a plan exists, in branched: first (only plan_tasks), explore (also reading), none (all).",
    ),
    key("task_skip_readonly", Kind::Switch, Some("false"), "Whether to skip planned tasks that only read."),
    key("task_replan_max", whole(0, 100), Some("0"), "Maximum number of retries of a failed planned task, or of direct."),
    key(
        "task_output_mode",
        Kind::Word(&["human", "runtime"]),
        Some("human"),
        "Final output of the runtime: human (one to three lines), runtime (one status line).",
    ),
    key(
        "benchmark_output_mode",
        Kind::Word(&["runtime", "model"]),
        Some("runtime"),
        "Output of --benchmark: runtime (Finished Try1), model (the model's last message).",
    ),
    key("verify", Kind::Text, None, "Command that verifies the work: runs after each change, and the task ends when it exits with 0. auto finds the project's own tests (the default of direct), off runs none.")
        .flag("--verify"),
    key("samples", whole(1, 100), None, "Maximum number of answers in direct: the first that passes is taken, else the best. By default 6 for a small model, else 1."),
    key("repairs", whole(0, 100), None, "Maximum number of repairs of the best answer in direct. By default 2 for a small model, else 0."),
    key("sample_temperature", Kind::Number { least: 0.0, most: 2.0 }, Some("0.7"), "Temperature of all answers but the first in direct."),
    key("parallel_samples", whole(1, 8), None, "Number of answers that direct requests concurrently, after the first. By default the number of slots that llama.cpp reports, 4 for vLLM, else 1."),
    key("escalate", Kind::Text, None, "Model that gets one attempt in direct after all answers failed. It counts towards the budget. Off by default."),
    key("before.read", Kind::Names, None, "Files the runtime reads into the context before the task: globs, @tests, @target."),
    key("before.run", Kind::Text, None, "Command the runtime runs before the task; its output is added to the context."),
    key("after.run", Kind::Text, None, "Command the runtime runs after the task."),
    key(
        "planning",
        Kind::Word(&["react", "plan-act-reflect", "goal-decomposition"]),
        None,
        "Planning strategy in the prompt: react (think, act, observe), plan-act-reflect (plan first, critical review last), \
         goal-decomposition (split the goal into subgoals).",
    ),
    key("edit_format", EDIT_FORMATS, Some("tools"), "How the model makes edits: tools, whole (the new file in a fenced block), blocks."),
    key("flow_stage_retries", whole(0, 100), Some("0"), "Maximum number of retries of a stage that did not complete."),
    key("flow_stage_required", Kind::Switch, Some("true"), "Whether the flow ends if a stage does not complete."),
    key(
        "flow_context_window",
        Kind::Signed { least: -1, most: 1000 },
        Some("6"),
        "Number of notes from earlier stages that a stage receives: 0 for none, negative for all.",
    ),
    key("flow_retry_hints", Kind::Switch, Some("true"), "Whether a retried stage is told what was missing."),
    key("flow_history_mode", HISTORY_MODES, Some("full"), "How much of a stage's conversation its requests include: full or tail."),
    key("flow_history_max_messages", whole(0, MANY), Some("0"), "Number of messages that `tail` keeps; 0 for no limit."),
    key("flow_history_keep_first", Kind::Switch, Some("true"), "Whether `tail` keeps the stage's prompt."),
    key("flow_history_strip_thinking", Kind::Switch, Some("false"), "Whether to omit the model's reasoning from a stage's requests."),
    key("flow_history_tool_truncate_chars", whole(0, MANY), Some("0"), "Maximum length of tool results in a stage's requests, in characters; 0 for no limit."),
    key("flow_history_tool_truncate_keep_last", whole(0, MANY), Some("0"), "Number of the newest tool results of a stage that are never truncated."),
    key("history_strip_thinking", Kind::Switch, Some("false"), "Whether to omit the model's earlier reasoning from requests."),
    key("history_tool_truncate_chars", whole(0, MANY), Some("0"), "Maximum length of tool results in requests, in characters; 0 for no limit."),
    key("history_tool_truncate_keep_last", whole(0, MANY), Some("0"), "Number of the newest tool results that are never truncated."),
    key("tools", Kind::Names, None, "Tools available to the model; all if not set."),
    key(
        "phase_log",
        Kind::Word(&["off", "stdout", "log", "both"]),
        Some("off"),
        "Where to show phase events: off, stdout, log, both. The event stream always has them.",
    ),
    key("phase_prompt_at", Kind::Word(&["system", "tail"]), Some("system"), "Where to put a phase's prompt: system (end of the system prompt), tail (after the last message)."),
    key(
        "phase_control.mode",
        Kind::Word(&["off", "rules", "llm", "hybrid"]),
        Some("off"),
        "What determines the phase of a task: off, rules (what was done), llm (a model, queried after each turn), hybrid (rules, then the model if they do not apply).",
    ),
    key("phase_control.states", Kind::Names, None, "Phases, in order; context, plan, implement if not set."),
    key("phase_control.default", Kind::Text, None, "Initial phase of a task; the first state if not set."),
    key("phase_control.rules.min_files_read_for_plan", whole(0, MANY), Some("1"), "Number of files to read before planning begins; also for staged if the request names no files."),
    key("phase_control.rules.auto_plan_after_read", Kind::Switch, Some("true"), "Whether planning begins once that many files are read."),
    key("phase_control.rules.write_to_implement", Kind::Switch, Some("true"), "Whether a change to a file begins the implementation phase."),
    key(
        "phase_control.rules.targets",
        Kind::Texts,
        None,
        "States that correspond to context, plan and implement; the first, the second to last and the last if not set.",
    ),
    key("phase_control.probe.temperature", Kind::Number { least: 0.0, most: 5.0 }, Some("0"), "Sampling temperature of the phase query."),
    key("phase_control.probe.max_tokens", whole(1, MANY), Some("64"), "Maximum number of tokens in the answer to the phase query."),
    key("phase_control.probe.system_prompt", Kind::Text, None, "System prompt of the phase query; built in if not set."),
    key("phase_control.probe.user_prompt", Kind::Text, None, "User prompt of the phase query; built in if not set. {states}, {phase} and {activity} are replaced."),
    key("phase_control.prompts", Kind::Texts, None, "Prompt of each phase."),
];

/// The keys of one `flow` stage.
pub(crate) const STAGE_KEYS: &[Key] = &[
    key("id", Kind::Text, None, "Id of the stage, as used in flow_stage_done."),
    key("label", Kind::Text, None, "Display name of the stage."),
    key("prompt", Kind::Text, None, "Instructions for the model."),
    key("done_hint", Kind::Text, None, "Instructions for ending the stage."),
    key("tools_allow", Kind::Names, None, "Tools that may be called; no others are allowed."),
    key("tools_block", Kind::Names, None, "Tools that may not be called."),
    key(
        "tools_mode",
        Kind::Word(&["refuse", "hide"]),
        None,
        "Whether to refuse calls of other tools, or to hide those tools.",
    ),
    key("require_files_read", whole(0, MANY), None, "Minimum number of files read."),
    key(
        "require_non_flow_tool",
        whole(0, MANY),
        None,
        "Minimum number of successful tool calls besides flow_stage_done.",
    ),
    key("require_code_change", Kind::Switch, None, "Whether a file must have changed."),
    key("allow_missing_done", Kind::Switch, None, "Whether the stage may end without flow_stage_done."),
    key(
        "context_window",
        Kind::Signed { least: -1, most: 1000 },
        None,
        "Same as flow_context_window, for this stage.",
    ),
    key("history_mode", HISTORY_MODES, None, "Same as flow_history_mode, for this stage."),
    key("history_max_messages", whole(0, MANY), None, "Same as flow_history_max_messages, for this stage."),
    key("history_keep_first", Kind::Switch, None, "Same as flow_history_keep_first, for this stage."),
    key("history_strip_thinking", Kind::Switch, None, "Same as flow_history_strip_thinking, for this stage."),
    key(
        "history_tool_truncate_chars",
        whole(0, MANY),
        None,
        "Same as flow_history_tool_truncate_chars, for this stage.",
    ),
    key(
        "history_tool_truncate_keep_last",
        whole(0, MANY),
        None,
        "Same as flow_history_tool_truncate_keep_last, for this stage.",
    ),
    key("max_turns", whole(1, MANY), None, "Maximum number of model replies in this stage."),
    key("model", Kind::Text, None, "Model to use for this stage."),
    key("edit_format", EDIT_FORMATS, None, "Same as edit_format, for this stage."),
    key("before.read", Kind::Names, None, "Files the runtime reads into the context before the stage."),
    key("before.run", Kind::Text, None, "Command the runtime runs before the stage."),
    key("after.run", Kind::Text, None, "Command the runtime runs after the stage."),
    key("verify", Kind::Text, None, "Command that verifies the stage."),
];

/// The keys that are only allowed in an agent file.
pub(crate) const AGENT_KEYS: &[Key] = &[
    key("name", Kind::Text, None, "Name of the agent."),
    key("description", Kind::Text, None, "Description of the agent."),
    key("prompt", Kind::Text, None, "Prompt file, relative to the agent file; same as --prompt."),
    key(
        "context_tokens",
        whole(1, MANY),
        None,
        "Context size of the model in tokens, if its server does not report it.",
    ),
];
