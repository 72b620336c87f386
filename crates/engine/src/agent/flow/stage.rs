//! One stage of a flow, as data. Settings it leaves out come from the flow.

use serde::{Deserialize, Serialize};

use super::settings::{FlowEditFormat, FlowSettings, HistoryMode, HistorySettings, RuntimeAction};

/// A stage: a part of the work with its own prompt, tools and requirements. It runs as a sub-run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stage {
    /// Identifier, used in `flow_stage_done`.
    pub id: String,
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Instructions for the model.
    pub prompt: String,
    /// Instructions on how to end the stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_hint: Option<String>,
    /// The only tools that may be called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools_allow: Vec<String>,
    /// Tools that may not be called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools_block: Vec<String>,
    /// How closed tools are treated.
    #[serde(skip_serializing_if = "ToolsMode::is_refuse")]
    pub tools_mode: ToolsMode,
    /// Minimum number of files read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_files_read: Option<u32>,
    /// Minimum number of successful calls besides `flow_stage_done`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require_non_flow_tool: Option<u32>,
    /// Whether a file must have changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub require_code_change: bool,
    /// Whether the stage may end without `flow_stage_done`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_missing_done: bool,
    /// Number of notes from earlier stages to include.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<i64>,
    /// See [`HistorySettings::mode`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_mode: Option<HistoryMode>,
    /// See [`HistorySettings::max_messages`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_max_messages: Option<u32>,
    /// See [`HistorySettings::keep_first`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_keep_first: Option<bool>,
    /// See [`HistorySettings::strip_thinking`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_strip_thinking: Option<bool>,
    /// See [`HistorySettings::tool_truncate_chars`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_tool_truncate_chars: Option<u32>,
    /// See [`HistorySettings::tool_truncate_keep_last`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_tool_truncate_keep_last: Option<u32>,
    /// Maximum number of model replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Model of this stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How the model gives its edits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit_format: Option<FlowEditFormat>,
    /// Actions of the runtime before the first model request.
    #[serde(skip_serializing_if = "RuntimeAction::is_empty")]
    pub before: RuntimeAction,
    /// Actions of the runtime after the work.
    #[serde(skip_serializing_if = "RuntimeAction::is_empty")]
    pub after: RuntimeAction,
    /// Command that verifies the stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<String>,
}

/// How closed tools are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolsMode {
    /// Listed, but calls are refused.
    #[default]
    Refuse,
    /// Not listed.
    Hide,
}

impl ToolsMode {
    fn is_refuse(&self) -> bool {
        *self == Self::Refuse
    }
}

impl Stage {
    /// Display name: the label, or else the id.
    pub fn shown(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.id)
    }

    /// History window of the stage: its own setting, else the flow's, else that of any task.
    pub fn history(&self, flow: &FlowSettings) -> HistorySettings {
        let base = flow.history_in_stages();
        HistorySettings {
            mode: self.history_mode.unwrap_or(base.mode),
            max_messages: self.history_max_messages.unwrap_or(base.max_messages),
            keep_first: self.history_keep_first.unwrap_or(base.keep_first),
            strip_thinking: self.history_strip_thinking.unwrap_or(base.strip_thinking),
            tool_truncate_chars: self.history_tool_truncate_chars.unwrap_or(base.tool_truncate_chars),
            tool_truncate_keep_last: self
                .history_tool_truncate_keep_last
                .unwrap_or(base.tool_truncate_keep_last),
        }
    }
}

impl FlowSettings {
    /// History window in a flow: the flow's settings where given, else those of any task.
    pub fn history_in_stages(&self) -> HistorySettings {
        let (stage, any) = (self.stage_history, self.history);
        let own_or = |here: u32, there: u32| if here > 0 { here } else { there };
        HistorySettings {
            strip_thinking: stage.strip_thinking || any.strip_thinking,
            tool_truncate_chars: own_or(stage.tool_truncate_chars, any.tool_truncate_chars),
            tool_truncate_keep_last: own_or(stage.tool_truncate_keep_last, any.tool_truncate_keep_last),
            ..stage
        }
    }
}
