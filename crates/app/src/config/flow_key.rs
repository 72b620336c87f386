//! The keys of flows: how a task is worked through, what a request holds, what the runtime does itself. They stand in
//! the same files as all others; `stages.rs` reads the list of stages.

use super::key::{Key, key, whole};
use super::value::Kind;

const MANY: u64 = u32::MAX as u64;

/// Where the words of a knob are needed twice.
const HISTORY_MODES: Kind = Kind::Word(&["full", "tail"]);
const EDIT_FORMATS: Kind = Kind::Word(&["tools", "whole", "blocks"]);

/// In the order they are shown.
pub(super) const FLOW_KEYS: &[Key] = &[
    key(
        "task_flow_mode",
        Kind::Word(&["flat", "staged", "staged3", "branched", "direct"]),
        Some("flat"),
        "How a task is worked through: flat (one session), staged (explore, plan, implement, gated), staged3 (the same \
         as three sub-runs), branched (a plan, then a sub-run a task), direct (the runtime reads and verifies, the model \
         answers with the new file).",
    )
    .flag("--flow"),
    key("task_branching", Kind::Switch, Some("false"), "The same as task_flow_mode = \"branched\"."),
    key(
        "flow",
        Kind::Stages,
        None,
        "Stages of one's own, in order: id, label, prompt, and what else a stage may say. Instead of task_flow_mode.",
    ),
    key(
        "task_plan_mode",
        Kind::Word(&["first", "explore", "none"]),
        Some("explore"),
        "What is open before a plan exists, in branched: first (nothing but plan_tasks), explore (reading too), none \
         (everything).",
    ),
    key("task_skip_readonly", Kind::Switch, Some("false"), "Whether planned tasks that only read are skipped."),
    key("task_replan_max", whole(0, 100), Some("0"), "Further attempts of a failed planned task, or of direct."),
    key(
        "task_output_mode",
        Kind::Word(&["human", "runtime"]),
        Some("human"),
        "What the runtime says at the end: human (one to three lines), runtime (one status line).",
    ),
    key(
        "benchmark_output_mode",
        Kind::Word(&["runtime", "model"]),
        Some("runtime"),
        "What --benchmark prints: runtime (Finished Try1), model (the model's last message).",
    ),
    key("verify", Kind::Text, None, "A command that tells whether the work is done: run after each change, green ends the task.")
        .flag("--verify"),
    key("before.read", Kind::Names, None, "Files the runtime reads into the context first: globs, @tests, @target."),
    key("before.run", Kind::Text, None, "A command the runtime runs first; its output is part of the context."),
    key("after.run", Kind::Text, None, "A command the runtime runs after the work."),
    key(
        "planning",
        Kind::Word(&["react", "plan-act-reflect", "goal-decomposition"]),
        None,
        "How the model is told to plan: react (think, act, look), plan-act-reflect (a plan first, a doubting look last), \
         goal-decomposition (the goal taken apart).",
    ),
    key("edit_format", EDIT_FORMATS, Some("tools"), "How edits come from the model: tools, whole (the new file in a fenced block), blocks."),
    key("flow_stage_retries", whole(0, 100), Some("0"), "Further attempts of a stage that did not complete."),
    key("flow_stage_required", Kind::Switch, Some("true"), "Whether a stage that does not complete ends the flow."),
    key(
        "flow_context_window",
        Kind::Signed { least: -1, most: 1000 },
        Some("6"),
        "Notes of earlier stages that a stage is told: 0 none, negative all.",
    ),
    key("flow_retry_hints", Kind::Switch, Some("true"), "Whether a stage that is tried again is told what was missing."),
    key("flow_history_mode", HISTORY_MODES, Some("full"), "How much of a stage's conversation its requests hold."),
    key("flow_history_max_messages", whole(0, MANY), Some("0"), "Messages that `tail` keeps; 0 is no limit."),
    key("flow_history_keep_first", Kind::Switch, Some("true"), "Whether `tail` keeps the stage's prompt."),
    key("flow_history_strip_thinking", Kind::Switch, Some("false"), "Whether a stage's requests leave out the model's reasoning."),
    key("flow_history_tool_truncate_chars", whole(0, MANY), Some("0"), "Characters that tool results in a stage's requests are cut to; 0 is no cut."),
    key("flow_history_tool_truncate_keep_last", whole(0, MANY), Some("0"), "Newest tool results of a stage that are not cut."),
    key("history_strip_thinking", Kind::Switch, Some("false"), "Whether requests leave out the model's earlier reasoning."),
    key("history_tool_truncate_chars", whole(0, MANY), Some("0"), "Characters that tool results in requests are cut to; 0 is no cut."),
    key("history_tool_truncate_keep_last", whole(0, MANY), Some("0"), "Newest tool results that are not cut."),
    key("tools", Kind::Names, None, "The tools on offer; all if not set."),
    key(
        "phase_log",
        Kind::Word(&["off", "stdout", "log", "both"]),
        Some("off"),
        "Where phase events are shown: off, stdout, log, both. The event stream has them always.",
    ),
    key("phase_prompt_at", Kind::Word(&["system", "tail"]), Some("system"), "Where a phase's prompt stands: at the end of the system prompt, or after the last message."),
    key(
        "phase_control.mode",
        Kind::Word(&["off", "rules", "llm", "hybrid"]),
        Some("off"),
        "Who says which phase a task is in: off, rules (what was done), llm (a model, asked after each turn), hybrid (rules, then the model where they say nothing).",
    ),
    key("phase_control.states", Kind::Names, None, "The phases, in order; context, plan, implement if not set."),
    key("phase_control.default", Kind::Text, None, "The phase a task begins in; the first of the states if not set."),
    key("phase_control.rules.min_files_read_for_plan", whole(0, MANY), Some("1"), "Files read before planning begins; for staged too, where the request names none."),
    key("phase_control.rules.auto_plan_after_read", Kind::Switch, Some("true"), "Whether reading so many files begins planning."),
    key("phase_control.rules.write_to_implement", Kind::Switch, Some("true"), "Whether a real change begins the implementation."),
    key(
        "phase_control.rules.targets",
        Kind::Texts,
        None,
        "The states that stand for context, plan and implement; the first, the one before last and the last if not set.",
    ),
    key("phase_control.probe.temperature", Kind::Number { least: 0.0, most: 5.0 }, Some("0"), "Sampling temperature of the question for the phase."),
    key("phase_control.probe.max_tokens", whole(1, MANY), Some("64"), "Most tokens of its answer."),
    key("phase_control.probe.system_prompt", Kind::Text, None, "Its system prompt, if not the built-in one."),
    key("phase_control.probe.user_prompt", Kind::Text, None, "Its question, if not the built-in one; {states}, {phase} and {activity} are filled in."),
    key("phase_control.prompts", Kind::Texts, None, "What a model is told in each phase."),
];

/// The keys of one stage of `flow`.
pub(crate) const STAGE_KEYS: &[Key] = &[
    key("id", Kind::Text, None, "Its name in flow_stage_done."),
    key("label", Kind::Text, None, "Its name for people."),
    key("prompt", Kind::Text, None, "What the model is to do."),
    key("done_hint", Kind::Text, None, "What the model is told about ending the stage."),
    key("tools_allow", Kind::Names, None, "Only these tools may be called."),
    key("tools_block", Kind::Names, None, "These tools may not be called."),
    key(
        "tools_mode",
        Kind::Word(&["refuse", "hide"]),
        None,
        "Whether calls of other tools are refused, or the tools not shown at all.",
    ),
    key("require_files_read", whole(0, MANY), None, "Least files read."),
    key("require_non_flow_tool", whole(0, MANY), None, "Least successful calls besides flow_stage_done."),
    key("require_code_change", Kind::Switch, None, "Whether a file must have changed."),
    key("allow_missing_done", Kind::Switch, None, "Whether the stage may end without flow_stage_done."),
    key(
        "context_window",
        Kind::Signed { least: -1, most: 1000 },
        None,
        "As flow_context_window, for this stage.",
    ),
    key("history_mode", HISTORY_MODES, None, "As flow_history_mode."),
    key("history_max_messages", whole(0, MANY), None, "As flow_history_max_messages."),
    key("history_keep_first", Kind::Switch, None, "As flow_history_keep_first."),
    key("history_strip_thinking", Kind::Switch, None, "As flow_history_strip_thinking."),
    key("history_tool_truncate_chars", whole(0, MANY), None, "As flow_history_tool_truncate_chars."),
    key("history_tool_truncate_keep_last", whole(0, MANY), None, "As flow_history_tool_truncate_keep_last."),
    key("max_turns", whole(1, MANY), None, "Replies of the model in this stage."),
    key("model", Kind::Text, None, "The model of this stage."),
    key("edit_format", EDIT_FORMATS, None, "As edit_format."),
    key("before.read", Kind::Names, None, "Files the runtime reads into the stage's context first."),
    key("before.run", Kind::Text, None, "A command the runtime runs before the stage."),
    key("after.run", Kind::Text, None, "A command the runtime runs after the stage."),
    key("verify", Kind::Text, None, "A command that tells whether the stage is done."),
];

/// The keys that only an agent file has.
pub(crate) const AGENT_KEYS: &[Key] = &[
    key("name", Kind::Text, None, "What the agent is called."),
    key("description", Kind::Text, None, "What it is for."),
    key("prompt", Kind::Text, None, "A prompt file, from where the agent file is; as --prompt."),
    key(
        "context_tokens",
        whole(1, MANY),
        None,
        "The size of the model's context, where its server does not tell.",
    ),
];
