//! Flow settings, from the configuration to what a run stores.

use std::path::{Path, PathBuf};

use fusee::engine::agent::flow::{
    FlowEditFormat, FlowMode, FlowSettings, HistoryMode, HistorySettings, OutputMode, PhaseControl, PhaseLog,
    PhaseMode, PhasePlace, PhaseProbe, PhaseRules, PlanMode, RuntimeAction, Stage,
};
use fusee::engine::text::suggest;
use serde::de::DeserializeOwned;

use super::{Config, Layer, Value, ValueOrigin};
use crate::process::error::CliError;

impl Config {
    /// The flow settings of a task.
    pub(crate) fn flow(&self) -> Result<FlowSettings, CliError> {
        let default = FlowSettings::default();
        let stages = self.stages()?;
        let phase_control = self.phase_control();
        let problems = self.phase_problems(&phase_control).into_iter().chain(self.stage_problems(&stages));
        if let Some(problem) = problems.into_iter().find(|problem| problem.is_error) {
            return Err(self.rejected(problem));
        }
        Ok(FlowSettings {
            mode: self.flow_mode(),
            stages: if self.uses_stages() { stages } else { Vec::new() },
            plan_mode: self.word("task_plan_mode").unwrap_or(PlanMode::Explore),
            skip_readonly: self.switch("task_skip_readonly").unwrap_or(default.skip_readonly),
            replan_max: self.small("task_replan_max").unwrap_or(default.replan_max),
            stage_retries: self.small("flow_stage_retries").unwrap_or(default.stage_retries),
            stage_required: self.switch("flow_stage_required").unwrap_or(default.stage_required),
            context_window: match self.value("flow_context_window") {
                Some((Value::Signed(window), _)) => *window,
                _ => default.context_window,
            },
            retry_hints: self.switch("flow_retry_hints").unwrap_or(default.retry_hints),
            stage_history: self.history("flow_history"),
            history: self.history("history"),
            tools: self.names("tools"),
            before: RuntimeAction {
                read: self.names("before.read"),
                run: self.text("before.run").map(str::to_owned),
            },
            after: RuntimeAction { read: Vec::new(), run: self.text("after.run").map(str::to_owned) },
            verify: self.text("verify").map(str::to_owned),
            samples: self.small("samples"),
            repairs: self.small("repairs"),
            sample_temperature: self.number("sample_temperature"),
            parallel_samples: self.small("parallel_samples"),
            escalate: self.text("escalate").map(str::to_owned),
            planning: self.word("planning"),
            edit_format: self.word("edit_format").unwrap_or(FlowEditFormat::Tools),
            phase_control,
            phase_prompt_at: self.word("phase_prompt_at").unwrap_or(PhasePlace::System),
            phase_log: self.word("phase_log").unwrap_or(PhaseLog::Off),
            output: self.word("task_output_mode").unwrap_or(OutputMode::Human),
            benchmark: None,
            ..default
        })
    }

    /// The prompt file named by an agent file.
    pub(crate) fn prompt_file(&self) -> Option<PathBuf> {
        let (Value::Text(name), ValueOrigin::File { path, .. }) = self.value("prompt")? else { return None };
        Some(path.parent().unwrap_or(Path::new(".")).join(name))
    }

    /// The model's context size, if an agent file sets it.
    pub(crate) fn context_tokens(&self) -> Option<u64> {
        self.whole("context_tokens")
    }

    /// The flow mode. `task_branching` is an alias for `branched`; the setting with the higher precedence
    /// wins.
    fn flow_mode(&self) -> FlowMode {
        let said = self.word("task_flow_mode").unwrap_or(FlowMode::Auto);
        let branching = self.switch("task_branching") == Some(true);
        if branching && self.layer("task_branching") >= self.layer("task_flow_mode") {
            FlowMode::Branched
        } else {
            said
        }
    }

    /// Whether `flow` stages are used: they win over a mode unless the mode has higher precedence.
    fn uses_stages(&self) -> bool {
        self.layer("flow") > Layer::BuiltIn && self.layer("flow") >= self.layer("task_flow_mode")
    }

    fn stages(&self) -> Result<Vec<Stage>, CliError> {
        let Some((Value::Stages(stages), origin)) = self.value("flow") else { return Ok(Vec::new()) };
        serde_json::from_value(stages.clone())
            .map_err(|error| CliError::usage(format!("{origin}: `flow`: {error}")))
    }

    fn history(&self, prefix: &str) -> HistorySettings {
        let default = HistorySettings::default();
        let name = |rest: &str| format!("{prefix}_{rest}");
        HistorySettings {
            mode: self.word(&name("mode")).unwrap_or(HistoryMode::Full),
            max_messages: self.small(&name("max_messages")).unwrap_or_default(),
            keep_first: self.switch(&name("keep_first")).unwrap_or(default.keep_first),
            strip_thinking: self.switch(&name("strip_thinking")).unwrap_or_default(),
            tool_truncate_chars: self.small(&name("tool_truncate_chars")).unwrap_or_default(),
            tool_truncate_keep_last: self.small(&name("tool_truncate_keep_last")).unwrap_or_default(),
        }
    }

    fn phase_control(&self) -> PhaseControl {
        let default = PhaseControl::default();
        let key = |rest: &str| format!("phase_control.{rest}");
        let states = match self.names(&key("states")) {
            none if none.is_empty() => default.states,
            states => states,
        };
        PhaseControl {
            mode: self.word(&key("mode")).unwrap_or(PhaseMode::Off),
            default: self.text(&key("default")).map(str::to_owned),
            rules: PhaseRules {
                min_files_read_for_plan: self
                    .small(&key("rules.min_files_read_for_plan"))
                    .unwrap_or(default.rules.min_files_read_for_plan),
                auto_plan_after_read: self.switch(&key("rules.auto_plan_after_read")).unwrap_or(true),
                write_to_implement: self.switch(&key("rules.write_to_implement")).unwrap_or(true),
                targets: self.texts(&key("rules.targets")),
            },
            probe: PhaseProbe {
                temperature: self.number(&key("probe.temperature")).unwrap_or(default.probe.temperature),
                max_tokens: self.small(&key("probe.max_tokens")).unwrap_or(default.probe.max_tokens),
                system_prompt: self.text(&key("probe.system_prompt")).map(str::to_owned),
                user_prompt: self.text(&key("probe.user_prompt")).map(str::to_owned),
            },
            prompts: self.texts(&key("prompts")),
            states,
        }
    }

    /// Everything about the flow that a single value cannot show to be wrong, for `fusee check`.
    pub(super) fn flow_problems(&self) -> Vec<FlowProblem> {
        let mut problems = self.phase_problems(&self.phase_control());
        problems.extend(self.stage_problems(&self.stages().unwrap_or_default()));
        problems.extend(self.tool_problems());
        let mode = self.text("task_flow_mode").filter(|mode| *mode != "branched");
        let both = self.layer("task_flow_mode") == self.layer("task_branching");
        if let (Some(true), Some(mode), true) = (self.switch("task_branching"), mode, both) {
            let message = format!("`task_branching` conflicts with `task_flow_mode = \"{mode}\"`");
            let help = Some("remove one of them".to_owned());
            problems.push(FlowProblem { key: "task_branching", message, help, is_error: true });
        }
        problems
    }

    /// Phases that are not one of the states, and rules that do not exist.
    fn phase_problems(&self, control: &PhaseControl) -> Vec<FlowProblem> {
        let mut problems = Vec::new();
        let targets = control.rules.targets.values().map(|name| ("phase_control.rules.targets", name));
        let prompts = control.prompts.keys().map(|name| ("phase_control.prompts", name));
        let first = control.default.iter().map(|name| ("phase_control.default", name));
        for (key, name) in first.chain(targets).chain(prompts) {
            if !control.states.contains(name) {
                let states = control.states.iter().map(String::as_str);
                problems.push(FlowProblem::no_such(key, "state", name, states));
            }
        }
        for name in control.rules.targets.keys() {
            let known = ["context", "plan", "implement"];
            if !known.contains(&name.as_str()) {
                let key = "phase_control.rules.targets";
                problems.push(FlowProblem::no_such(key, "rule", name, known.into_iter()));
            }
        }
        problems
    }

    /// Unknown tools of the stages.
    fn stage_problems(&self, stages: &[Stage]) -> Vec<FlowProblem> {
        let of_stage = |stage: &Stage| {
            let names = stage.tools_allow.iter().chain(&stage.tools_block);
            unknown_tools("flow", names, &format!("stage `{}`", stage.id))
        };
        stages.iter().flat_map(of_stage).collect()
    }

    /// Unknown tools of the keys that list tools.
    fn tool_problems(&self) -> Vec<FlowProblem> {
        let keys = ["tools", "review_mode_restrictions.allowed_tools"];
        let of_key = |key| unknown_tools(key, self.names(key).iter(), &format!("`{key}`"));
        keys.into_iter().flat_map(of_key).collect()
    }

    /// Checks that the configured tool names exist.
    pub(crate) fn check_tools(&self) -> Result<(), CliError> {
        let problem = self.tool_problems().into_iter().find(|problem| problem.is_error);
        problem.map_or(Ok(()), |problem| Err(self.rejected(problem)))
    }

    fn rejected(&self, problem: FlowProblem) -> CliError {
        let FlowProblem { key, message, help, .. } = problem;
        let origin = self.value(key).map(|(_, origin)| format!("{origin}: ")).unwrap_or_default();
        CliError { help, ..CliError::usage(format!("{origin}{message}")) }
    }

    pub(super) fn word<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        super::word(self.text(key)?)
    }

    pub(super) fn switch(&self, key: &str) -> Option<bool> {
        match self.value(key) {
            Some((Value::Switch(on), _)) => Some(*on),
            _ => None,
        }
    }

    pub(super) fn small(&self, key: &str) -> Option<u32> {
        self.whole(key).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    pub(super) fn names(&self, key: &str) -> Vec<String> {
        match self.value(key) {
            Some((Value::Names(names), _)) => names.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn texts(&self, key: &str) -> std::collections::BTreeMap<String, String> {
        match self.value(key) {
            Some((Value::Texts(texts), _)) => texts.clone(),
            _ => Default::default(),
        }
    }
}

/// A value that does not fit the others, or names something that does not exist.
pub(super) struct FlowProblem {
    /// The key to correct.
    pub(super) key: &'static str,
    pub(super) message: String,
    pub(super) help: Option<String>,
    /// Whether it stops a run; otherwise it is only suspicious.
    pub(super) is_error: bool,
}

impl FlowProblem {
    fn no_such<'a>(
        key: &'static str,
        kind: &str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        let names = known.clone().collect::<Vec<_>>().join(", ");
        let message = format!("`{key}` names `{name}`, which is not a {kind}");
        let help = suggest::did_you_mean(name, known).unwrap_or_else(|| format!("expected one of {names}"));
        Self { key, message, help: Some(help), is_error: true }
    }
}

/// Names that are not those of a tool. One that is unlike all known names may belong to an MCP server that was not
/// asked yet, so it does not stop a run.
fn unknown_tools<'a>(
    key: &'static str,
    names: impl Iterator<Item = &'a String>,
    whose: &str,
) -> Vec<FlowProblem> {
    let known = fusee::engine::agent::flow::tool_names();
    let problem = |name: &String| {
        let near = suggest::did_you_mean(name, known.iter().map(String::as_str));
        let (message, is_error) = (format!("{whose} names the unknown tool `{name}`"), near.is_some());
        let help = near.or_else(|| Some("only an MCP server could offer it".to_owned()));
        FlowProblem { key, message, help, is_error }
    };
    names.filter(|name| !known.contains(*name)).map(problem).collect()
}
