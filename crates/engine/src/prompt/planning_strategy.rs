//! Planning strategies: ready-made sections that use the tool `plan_tasks`.

use serde::{Deserialize, Serialize};

use super::section::PromptSection;

/// A strategy for working through a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanningStrategy {
    /// Alternate between thinking, acting and observing.
    React,
    /// Plan first, then act, then reflect on the result.
    #[default]
    PlanActReflect,
    /// Break the goal down until each part can be done.
    GoalDecomposition,
}

impl PlanningStrategy {
    /// Returns the instructions for the model.
    pub fn text(self) -> &'static str {
        match self {
            Self::React => include_str!("planning_strategy/react.md"),
            Self::PlanActReflect => include_str!("planning_strategy/plan_act_reflect.md"),
            Self::GoalDecomposition => include_str!("planning_strategy/goal_decomposition.md"),
        }
    }

    /// Returns the section with the instructions and the planning tool.
    pub fn section(self) -> PromptSection {
        PromptSection::literal("planning", "Planning", self.text()).tool("plan_tasks")
    }
}
