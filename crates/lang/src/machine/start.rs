//! Creating a machine and binding the workflow's parameters.

use std::sync::Arc;

use fusee_text::{Span, suggest};
use serde_json::{Map as JsonMap, Value as Json};

use super::{CodeFrame, Frame, Machine, MachineState};
use crate::bytecode::Program;
use crate::fuel::{EvaluationLimits, Fuel};
use crate::function::EvaluationBranch;
use crate::value::Value;

/// An invalid input of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterProblem {
    /// Name of the parameter, or the unknown name.
    pub name: String,
    /// One-sentence description.
    pub message: String,
}

impl Machine {
    /// Creates a machine at the start of a workflow, or returns all problems with its inputs.
    pub fn start(
        program: &Arc<Program>,
        inputs: &JsonMap<String, Json>,
        limits: EvaluationLimits,
    ) -> Result<Machine, Vec<ParameterProblem>> {
        let mut globals = vec![Value::UNSET; program.globals.len()];
        let mut problems = Vec::new();
        for (param, index) in &program.params {
            let value = match inputs.get(&param.name).or(param.default.as_ref()) {
                Some(value) => value,
                None => {
                    let message = format!("missing parameter `{}` ({})", param.name, param.kind.name());
                    problems.push(ParameterProblem { name: param.name.clone(), message });
                    continue;
                }
            };
            let given = inputs.contains_key(&param.name);
            if given && !param.kind.accepts(value) {
                let message = format!("the parameter `{}` must be of type {}", param.name, param.kind.name());
                problems.push(ParameterProblem { name: param.name.clone(), message });
            }
            if let Some(global) = globals.get_mut(*index as usize) {
                *global = Value::from_json(value.clone());
            }
        }
        for name in inputs.keys().filter(|name| !program.params().any(|param| param.name == **name)) {
            let help = suggest::did_you_mean(name, program.params().map(|param| param.name.as_str()));
            let message = format!(
                "unknown parameter `{name}`{}",
                help.map_or(String::new(), |help| format!("; {help}"))
            );
            problems.push(ParameterProblem { name: name.clone(), message });
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let main = program.functions.len().saturating_sub(1) as u32;
        Ok(Machine {
            program: program.clone(),
            globals: Arc::new(globals),
            stack: Vec::new(),
            frames: vec![Frame::Code(CodeFrame { function: main, next: 0, base: 0, floor: 0 })],
            handlers: Vec::new(),
            fuel: Fuel::new(limits),
            branch: EvaluationBranch::main(),
            cells: Arc::default(),
            state: MachineState::Ready(None),
            next_limits: 0,
            home: program.location(0, Span::at(0)),
        })
    }
}
