//! How a model is told to plan: ready sections over the tool `plan_tasks`.

use serde::{Deserialize, Serialize};

use super::section::Section;

/// A way to work through a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanningStrategy {
    /// Think, act, look at what came of it, and so on.
    React,
    /// A plan first, then the work, then a second look at it.
    #[default]
    PlanActReflect,
    /// The goal is taken apart until each part can be done.
    GoalDecomposition,
}

impl PlanningStrategy {
    /// What a model is told.
    pub fn text(self) -> &'static str {
        match self {
            Self::React => include_str!("planning/react.md"),
            Self::PlanActReflect => include_str!("planning/plan_act_reflect.md"),
            Self::GoalDecomposition => include_str!("planning/goal_decomposition.md"),
        }
    }

    /// The section that says so and brings the tool.
    pub fn section(self) -> Section {
        Section::literal("planning", "Planning", self.text()).tool("plan_tasks")
    }
}
