//! The agent loops: `director-evaluator-loop` and `iterative-loop`.

use super::higher_order::NextStep;
use crate::runtime_error::UnlocatedError;
use crate::value::{Value, brief};

/// An agent loop in progress.
pub(super) struct AgentLoop {
    kind: AgentLoopKind,
    functions: LoopFunctions,
    most: i64,
    round: i64,
    input: Value,
    phase: LoopPhase,
    /// Results of the phases of this round so far.
    values: Vec<Value>,
}

/// Which of the two loops it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentLoopKind {
    Director,
    Iterative,
}

/// The functions by phase; for an `iterative-loop`, `first` is the test command instead of the director.
pub(super) struct LoopFunctions {
    pub(super) first: Value,
    pub(super) executor: Value,
    pub(super) judge: Value,
    pub(super) controller: Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LoopPhase {
    Begin,
    Directed,
    Executed,
    Evaluated,
    Decided,
}

impl AgentLoop {
    pub(super) fn new(
        kind: AgentLoopKind,
        most: &Value,
        input: Value,
        functions: LoopFunctions,
    ) -> Result<Self, UnlocatedError> {
        let Value::Int(most) = most else {
            let message = format!("`max-iterations` must be an integer, not {}", brief(most));
            return Err(UnlocatedError::new("wrong-type", message));
        };
        let calls = [("executor", &functions.executor), ("controller", &functions.controller)];
        let judge = if kind == AgentLoopKind::Director { "evaluator" } else { "validator" };
        let director = (kind == AgentLoopKind::Director).then_some(("director", &functions.first));
        for (name, value) in calls.into_iter().chain([(judge, &functions.judge)]).chain(director) {
            if !matches!(value, Value::Function(_) | Value::Builtin(_)) {
                let message = format!("`{name}` must be a function, not {} {}", value.kind(), brief(value));
                return Err(UnlocatedError::new("wrong-type", message));
            }
        }
        let (most, phase) = (*most, LoopPhase::Begin);
        Ok(Self { kind, functions, most, round: 1, input, phase, values: Vec::new() })
    }

    /// Takes the result of the completed phase and pushes the call of the next one.
    pub(super) fn step(
        &mut self,
        value: Option<Value>,
        stack: &mut Vec<Value>,
    ) -> Result<NextStep, UnlocatedError> {
        let value = value.unwrap_or_default();
        match self.phase {
            LoopPhase::Begin => Ok(self.begin(stack)),
            LoopPhase::Directed => {
                self.values = vec![value];
                Ok(self.execute(stack))
            }
            LoopPhase::Executed => {
                self.values.push(value);
                Ok(self.evaluate(stack))
            }
            LoopPhase::Evaluated => {
                self.values.push(value);
                Ok(self.decide(stack))
            }
            LoopPhase::Decided => self.follow(value, stack),
        }
    }

    pub(super) fn held<'n>(&'n self, found: &mut Vec<&'n Value>) {
        let LoopFunctions { first, executor, judge, controller } = &self.functions;
        found.extend([first, executor, judge, controller, &self.input]);
        found.extend(&self.values);
    }

    fn begin(&mut self, stack: &mut Vec<Value>) -> NextStep {
        if self.round > self.most {
            return NextStep::Return(Value::list([
                Value::symbol("exhausted"),
                std::mem::take(&mut self.input),
            ]));
        }
        match self.kind {
            AgentLoopKind::Director => {
                self.phase = LoopPhase::Directed;
                let call = [self.functions.first.clone(), self.input.clone(), Value::Int(self.round)];
                stack.extend(call);
                NextStep::Call(2)
            }
            AgentLoopKind::Iterative => {
                self.values = vec![self.input.clone()];
                self.execute(stack)
            }
        }
    }

    /// `(executor plan i)`, or `(executor input i)`.
    fn execute(&mut self, stack: &mut Vec<Value>) -> NextStep {
        self.phase = LoopPhase::Executed;
        stack.extend([self.functions.executor.clone(), self.value(0), Value::Int(self.round)]);
        NextStep::Call(2)
    }

    /// `(evaluator result plan i)`, or `(validator test-command i)`.
    fn evaluate(&mut self, stack: &mut Vec<Value>) -> NextStep {
        self.phase = LoopPhase::Evaluated;
        stack.push(self.functions.judge.clone());
        match self.kind {
            AgentLoopKind::Director => stack.extend([self.value(1), self.value(0), Value::Int(self.round)]),
            AgentLoopKind::Iterative => stack.extend([self.functions.first.clone(), Value::Int(self.round)]),
        }
        NextStep::Call(if self.kind == AgentLoopKind::Director { 3 } else { 2 })
    }

    /// `(controller feedback plan result i)`, or `(controller result validation input i)`.
    fn decide(&mut self, stack: &mut Vec<Value>) -> NextStep {
        self.phase = LoopPhase::Decided;
        let order = if self.kind == AgentLoopKind::Director { [2, 0, 1] } else { [1, 2, 0] };
        stack.push(self.functions.controller.clone());
        stack.extend(order.map(|index| self.value(index)));
        stack.push(Value::Int(self.round));
        NextStep::Call(4)
    }

    fn follow(&mut self, decision: Value, stack: &mut Vec<Value>) -> Result<NextStep, UnlocatedError> {
        let word = match &decision {
            Value::List(list) if list.len() == 2 => match list.first() {
                Some(Value::Symbol(tag) | Value::Text(tag)) => Some((tag.clone(), list.get(1).cloned())),
                _ => None,
            },
            _ => None,
        };
        match word {
            Some((tag, value)) if &*tag == "stop" => Ok(NextStep::Return(value.unwrap_or_default())),
            Some((tag, value)) if &*tag == "continue" => {
                self.input = value.unwrap_or_default();
                self.round += 1;
                self.values.clear();
                Ok(self.begin(stack))
            }
            _ => {
                let message = format!(
                    "the controller returned {} instead of (stop value) or (continue input)",
                    brief(&decision)
                );
                Err(UnlocatedError::new("bad-decision", message))
            }
        }
    }

    fn value(&self, index: usize) -> Value {
        self.values.get(index).cloned().unwrap_or_default()
    }
}
