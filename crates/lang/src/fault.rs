//! What went wrong while a workflow ran: where, by which way, and why. What is wrong with its text before it runs is a
//! [`fusee_text::Diagnostic`] instead.

use std::fmt;
use std::sync::Arc;

use fusee_text::{Position, Span};
use serde_json::Value as Json;

use crate::value::{Map, Text, Value, unlink};

/// A place in the text of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the source.
    pub file: Arc<str>,
    /// Byte range in it.
    pub span: Span,
    /// First character.
    pub start: Position,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.start)
    }
}

/// One call that was under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Name of the function that was called.
    pub name: Text,
    /// Where it was called; `None` where the machine itself called, as `map` does.
    pub place: Option<Place>,
}

/// An error of a running workflow. Caught, it is the value `catch` binds.
#[derive(Clone, PartialEq)]
pub struct Fault {
    /// The type of the error: `TASK_FAILURE`, `RESOURCE_EXHAUSTION`, `VALIDATION_ERROR`, or what the program said.
    pub kind: Text,
    /// The reason within the type.
    pub reason: Option<Text>,
    /// What exactly went wrong, for programs that read it: `wrong-type`, `raised`, `out-of-range`, ….
    pub code: &'static str,
    /// One sentence, without the place.
    pub message: String,
    /// What `raise` was given, where that was not a string.
    pub value: Value,
    /// The form that failed.
    pub place: Place,
    /// The calls under way, innermost first, at most [`Fault::TRAIL`].
    pub trail: Vec<Call>,
    /// The failure this one comes from, as the failing task reported it.
    pub cause: Value,
    /// Set where a limit ended the evaluation inside a `with-limits`: only a `try` around it catches.
    pub(crate) beyond: Option<u64>,
}

impl Fault {
    /// Most calls kept of a trail.
    pub const TRAIL: usize = 32;

    /// The sentence with the place it begins with, as a task's error message has it: `LINE:COLUMN: …`.
    pub fn headline(&self) -> String {
        format!("{}: {}", self.place.start, self.message)
    }

    /// The error object of `fusee task --json`, with the place and the trail beside the documented fields.
    pub fn to_json(&self) -> Json {
        // What was raised may be no data, or nested too deep; then it is shown instead.
        let mut error = self.to_value().to_json().unwrap_or_else(|_| {
            let mut shown = self.clone();
            shown.value = Value::text(self.value.display(1000));
            shown.cause = Value::text(self.cause.display(1000));
            shown.to_value().to_json().unwrap_or_default()
        });
        if let Json::Object(fields) = &mut error {
            fields.insert("message".into(), Json::String(self.headline()));
        }
        error
    }

    /// The error as a map: what `get` and `get-field` see of it.
    pub(crate) fn to_value(&self) -> Value {
        let text = |text: &str| Value::text(text);
        let number = |number: usize| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        let mut entries = vec![(Text::from("type"), Value::Text(self.kind.clone()))];
        if let Some(reason) = &self.reason {
            entries.push((Text::from("reason"), Value::Text(reason.clone())));
        }
        entries.push((Text::from("message"), text(&self.message)));
        entries.push((Text::from("code"), text(self.code)));
        entries.push((Text::from("file"), text(&self.place.file)));
        entries.push((Text::from("line"), number(self.place.start.line)));
        entries.push((Text::from("column"), number(self.place.start.column)));
        if !matches!(self.value, Value::Nil) {
            entries.push((Text::from("value"), self.value.clone()));
        }
        if !self.trail.is_empty() {
            let calls = self.trail.iter().map(|call| Value::text(call.to_string()));
            entries.push((Text::from("trail"), Value::List(calls.collect())));
        }
        if !matches!(self.cause, Value::Nil) {
            entries.push((Text::from("cause"), self.cause.clone()));
        }
        Value::Map(entries.into_iter().collect::<Map>())
    }

    /// The same fault, to be raised again: with its place and its trail.
    pub(crate) fn again(&self) -> Fault {
        let mut again = self.clone();
        again.beyond = None;
        again
    }

    pub(crate) fn take_apart(&mut self, pending: &mut Vec<Value>) {
        pending.push(std::mem::take(&mut self.value));
        pending.push(std::mem::take(&mut self.cause));
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        let mut pending = Vec::new();
        self.take_apart(&mut pending);
        unlink(pending);
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{} at {place}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

/// The whole story: place, sentence, calls, causes.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        for call in &self.trail {
            write!(f, "\n  in {call}")?;
        }
        let mut cause = &self.cause;
        // A chain of causes is as long as tasks nest; a made-up one could be longer.
        for _ in 0..Self::TRAIL {
            let Value::Map(fields) = cause else { break };
            let field = |name| match fields.get(name) {
                Some(Value::Text(text)) => Some(text),
                _ => None,
            };
            let kind = field("reason").or(field("type")).map_or("error", |text| text);
            write!(f, "\n  caused by {kind}: {}", field("message").map_or("", |text| text))?;
            cause = fields.get("cause").unwrap_or(&Value::Nil);
        }
        Ok(())
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A failure before the machine has said where: what library functions return. One word, since success is common.
#[derive(Debug)]
pub(crate) struct Problem(Box<Report>);

/// What a [`Problem`] says.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) kind: Text,
    pub(crate) reason: Option<Text>,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) value: Value,
    pub(crate) how: How,
}

/// What the machine does about a [`Problem`].
#[derive(Debug)]
pub(crate) enum How {
    /// Raise it at the form being evaluated.
    Raise,
    /// Raise this fault, which knows its own place.
    Whole(Box<Fault>),
    /// Count memory; try again if this many bytes are left, else end.
    NeedMemory(usize),
    /// End: the steps are used up.
    OutOfSteps,
}

impl Problem {
    /// An error of the program.
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self::of("TASK_FAILURE", "unexpected_error", code, message.into(), How::Raise)
    }

    /// An input that is not what was declared.
    pub(crate) fn invalid(code: &'static str, message: impl Into<String>) -> Self {
        Self::of("VALIDATION_ERROR", "input_validation_failure", code, message.into(), How::Raise)
    }

    /// A limit was reached.
    pub(crate) fn exhausted(reason: &'static str, message: impl Into<String>) -> Self {
        Self::of("RESOURCE_EXHAUSTION", reason, "limit-reached", message.into(), How::Raise)
    }

    /// More memory is needed than may have been used already.
    pub(crate) fn need_memory(bytes: usize) -> Self {
        Self::of("RESOURCE_EXHAUSTION", "memory", "limit-reached", String::new(), How::NeedMemory(bytes))
    }

    pub(crate) fn out_of_steps() -> Self {
        Self::of("RESOURCE_EXHAUSTION", "steps", "limit-reached", String::new(), How::OutOfSteps)
    }

    /// What `raise` raises.
    pub(crate) fn raised(kind: Text, reason: Option<Text>, message: String, value: Value) -> Self {
        Self(Box::new(Report { kind, reason, code: "raised", message, value, how: How::Raise }))
    }

    pub(crate) fn into_report(self) -> Report {
        *self.0
    }

    fn of(kind: &str, reason: &str, code: &'static str, message: String, how: How) -> Self {
        let (kind, reason) = (Text::from(kind), Some(Text::from(reason)));
        Self(Box::new(Report { kind, reason, code, message, value: Value::Nil, how }))
    }
}

impl From<Report> for Problem {
    fn from(report: Report) -> Self {
        Self(Box::new(report))
    }
}

impl From<Box<Fault>> for Problem {
    fn from(fault: Box<Fault>) -> Self {
        Self::of("TASK_FAILURE", "unexpected_error", fault.code, String::new(), How::Whole(fault))
    }
}
