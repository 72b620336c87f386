//! State machine over a task's events that checks their order. The schema covers single events.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// Which part of a run's stream is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// From `task_started` to `task_complete`.
    Whole,
    /// Output of a killed process: any prefix of a whole stream.
    Head,
    /// Output of the resumed process: may begin in the middle, but must end.
    Tail,
}

/// Violations of the event order in the stream.
pub fn faults(events: &[Value], part: Part) -> Vec<String> {
    let mut stream = Stream { part, faults: Vec::new(), tasks: HashMap::new(), seq: None, order: Vec::new() };
    for event in events {
        stream.take(event);
    }
    stream.end(events);
    stream.faults
}

struct Stream {
    part: Part,
    faults: Vec<String>,
    tasks: HashMap<String, Task>,
    order: Vec<String>,
    seq: Option<u64>,
}

#[derive(Default)]
struct Task {
    started: bool,
    status: Option<String>,
    open_turn: Option<Value>,
    last_turn: Option<u64>,
    calls: HashSet<String>,
    answered: HashSet<String>,
    approvals: HashSet<String>,
    /// Current phase by event source.
    phases: HashMap<String, String>,
}

impl Stream {
    fn take(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap_or_default();
        match event["seq"].as_u64() {
            Some(seq) => {
                if self.seq.is_some_and(|last| seq <= last) {
                    self.faults.push(format!("seq {seq} after {:?}: {kind}", self.seq));
                }
                self.seq = Some(seq);
            }
            None => self.faults.push(format!("an event without seq: {event}")),
        }
        let Some(id) = event["task"].as_str() else {
            self.faults.push(format!("an event without a task: {event}"));
            return;
        };
        if !self.tasks.contains_key(id) {
            self.order.push(id.to_owned());
        }
        let whole_from_here = self.part != Part::Tail;
        let task = self.tasks.entry(id.to_owned()).or_default();
        let mut wrong = |text: &str| self.faults.push(format!("{text}: {event}"));
        if task.status.is_some() {
            wrong("after the end of its task");
        }
        match kind {
            "task_started" => {
                if task.started {
                    wrong("a second start");
                }
                task.started = true;
            }
            _ if whole_from_here && !task.started => wrong("before the start of its task"),
            _ => {}
        }
        match kind {
            "turn_start" => {
                if task.open_turn.is_some() {
                    wrong("a turn inside a turn");
                }
                let index = event["turn_index"].as_u64();
                if index.is_none() || (task.last_turn.is_some() && index <= task.last_turn) {
                    wrong("a turn index that does not grow");
                }
                task.last_turn = index;
                task.open_turn = Some(event["turn_id"].clone());
            }
            "turn_complete" => match task.open_turn.take() {
                Some(id) if id == event["turn_id"] && whole_from_here && task.calls != task.answered => {
                    wrong("a turn that ends with open calls");
                }
                Some(id) if id == event["turn_id"] => {}
                Some(_) => wrong("the end of another turn"),
                None if whole_from_here => wrong("the end of a turn that did not start"),
                None => {}
            },
            "tool_call" if !task.calls.insert(text(event, "call_id")) => wrong("a second call under one id"),
            "tool_result" => {
                let id = text(event, "call_id");
                if whole_from_here && !task.calls.contains(&id) {
                    wrong("a result without its call");
                }
                if !task.answered.insert(id) {
                    wrong("a second result of one call");
                }
            }
            "approval_requested" => {
                task.approvals.insert(text(event, "call_id"));
            }
            "approval_resolved" if !task.approvals.remove(&text(event, "call_id")) && whole_from_here => {
                wrong("an answer nobody asked for");
            }
            "phase_state" => {
                task.phases.insert(text(event, "source"), text(event, "phase"));
            }
            "phase_transition" => {
                let before = task.phases.insert(text(event, "source"), text(event, "to"));
                if whole_from_here && before != Some(text(event, "from")) {
                    wrong("from a phase that it was not in");
                }
            }
            "task_complete" => {
                let status = text(event, "status");
                if status == "completed" && task.open_turn.is_some() {
                    wrong("completed within a turn");
                }
                let open: Vec<_> = task.calls.difference(&task.answered).collect();
                if !open.is_empty() {
                    wrong(&format!("ended with calls unanswered {open:?}"));
                }
                task.status = Some(status);
            }
            _ => {}
        }
    }

    fn end(&mut self, events: &[Value]) {
        let kind =
            |event: Option<&Value>| event.and_then(|e| e["type"].as_str()).unwrap_or("nothing").to_owned();
        let (first, last) = (kind(events.first()), kind(events.last()));
        if self.part != Part::Tail
            && !(first == "task_started" || (self.part == Part::Head && events.is_empty()))
        {
            self.faults.push(format!("the first event is {first}"));
        }
        if self.part == Part::Head {
            return;
        }
        if last != "task_complete" {
            self.faults.push(format!("the last event is {last}"));
        }
        if events.first().map(|e| &e["task"]) != events.last().map(|e| &e["task"]) {
            self.faults.push("the last event is not the main task's".to_owned());
        }
        for id in &self.order {
            if self.tasks.get(id).is_some_and(|task| task.status.is_none()) {
                self.faults.push(format!("task {id} never ended"));
            }
        }
    }
}

fn text(event: &Value, key: &str) -> String {
    event[key].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
