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
        let phase_control = self.phase_control()?;
        Ok(FlowSettings {
            mode: self.flow_mode(),
            stages: if self.goes_by_stages() { stages } else { Vec::new() },
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
            planning: self.word("planning"),
            edit_format: self.word("edit_format").unwrap_or(FlowEditFormat::Tools),
            phase_control,
            phase_prompt_at: self.word("phase_prompt_at").unwrap_or(PhasePlace::System),
            phase_log: self.word("phase_log").unwrap_or(PhaseLog::Off),
            output: self.word("task_output_mode").unwrap_or(OutputMode::Human),
            benchmark: None,
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
        let said = self.word("task_flow_mode").unwrap_or(FlowMode::Flat);
        let branching = self.switch("task_branching") == Some(true);
        if branching && self.layer("task_branching") >= self.layer("task_flow_mode") {
            FlowMode::Branched
        } else {
            said
        }
    }

    /// Whether `flow` stages are used: they win over a mode unless the mode has higher precedence.
    fn goes_by_stages(&self) -> bool {
        self.layer("flow") > Layer::BuiltIn && self.layer("flow") >= self.layer("task_flow_mode")
    }

    fn stages(&self) -> Result<Vec<Stage>, CliError> {
        let Some((Value::Stages(stages), origin)) = self.value("flow") else { return Ok(Vec::new()) };
        let stages: Vec<Stage> = serde_json::from_value(stages.clone())
            .map_err(|error| CliError::usage(format!("{origin}: `flow`: {error}")))?;
        for stage in &stages {
            known_tools(
                stage.tools_allow.iter().chain(&stage.tools_block),
                &format!("{origin}: stage `{}`", stage.id),
            )?;
        }
        Ok(stages)
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

    fn phase_control(&self) -> Result<PhaseControl, CliError> {
        let default = PhaseControl::default();
        let key = |rest: &str| format!("phase_control.{rest}");
        let states = match self.names(&key("states")) {
            none if none.is_empty() => default.states,
            states => states,
        };
        let control = PhaseControl {
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
        };
        self.check_phases(&control)?;
        Ok(control)
    }

    /// Checks that every phase named is one of the states.
    fn check_phases(&self, control: &PhaseControl) -> Result<(), CliError> {
        let targets = control.rules.targets.values().map(|name| ("phase_control.rules.targets", name));
        let prompts = control.prompts.keys().map(|name| ("phase_control.prompts", name));
        let first = control.default.iter().map(|name| ("phase_control.default", name));
        for (key, name) in first.chain(targets).chain(prompts) {
            if !control.states.contains(name) {
                return Err(self.no_such(key, "state", name, control.states.iter().map(String::as_str)));
            }
        }
        for name in control.rules.targets.keys() {
            let known = ["context", "plan", "implement"];
            if !known.contains(&name.as_str()) {
                return Err(self.no_such("phase_control.rules.targets", "rule", name, known.into_iter()));
            }
        }
        Ok(())
    }

    fn no_such<'a>(
        &self,
        key: &str,
        sort: &str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> CliError {
        let origin = self.value(key).map(|(_, origin)| format!("{origin}: ")).unwrap_or_default();
        let names = known.clone().collect::<Vec<_>>().join(", ");
        CliError::usage(format!("{origin}`{key}` names `{name}`, which is not a {sort}"))
            .help(suggest::did_you_mean(name, known).unwrap_or_else(|| format!("expected one of {names}")))
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

    fn texts(&self, key: &str) -> std::collections::BTreeMap<String, String> {
        match self.value(key) {
            Some((Value::Texts(texts), _)) => texts.clone(),
            _ => Default::default(),
        }
    }

    /// Checks that the configured tool names exist.
    pub(crate) fn check_tools(&self) -> Result<(), CliError> {
        for key in ["tools", "review_mode_restrictions.allowed_tools"] {
            let origin = self.value(key).map(|(_, origin)| origin.to_string()).unwrap_or_default();
            known_tools(self.names(key).iter(), &format!("{origin}: `{key}`"))?;
        }
        Ok(())
    }
}

/// Rejects names that are close to a tool's name. Other unknown names may belong to an MCP server not yet
/// queried.
fn known_tools<'a>(names: impl Iterator<Item = &'a String>, at: &str) -> Result<(), CliError> {
    let mut names = names.peekable();
    if names.peek().is_none() {
        return Ok(());
    }
    let known = fusee::engine::agent::flow::tool_names();
    for name in names.filter(|name| !known.contains(name)) {
        if let Some(help) = suggest::did_you_mean(name, known.iter().map(String::as_str)) {
            return Err(CliError::usage(format!("{at} names the unknown tool `{name}`")).help(help));
        }
    }
    Ok(())
}
