//! Runtime errors of a workflow, with location and stack trace. Errors found before it runs are
//! [`fusee_text::Diagnostic`]s.

use std::fmt;
use std::sync::Arc;

use fusee_text::{Position, Span};
use serde_json::Value as Json;

use crate::value::{Map, Text, Value, drop_iteratively};

/// A location in the source of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// Name of the source.
    pub file: Arc<str>,
    /// Byte range in the source.
    pub span: Span,
    /// Position of the first character.
    pub start: Position,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.start)
    }
}

/// One entry of a stack trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// Name of the called function.
    pub name: Text,
    /// Location of the call; `None` for calls made by the machine, as in `map`.
    pub location: Option<SourceLocation>,
}

/// A runtime error of a workflow. `catch` binds it as a value.
#[derive(Clone, PartialEq)]
pub struct RuntimeError {
    /// Error type: `TASK_FAILURE`, `RESOURCE_EXHAUSTION`, `VALIDATION_ERROR`, or one chosen by the program.
    pub kind: Text,
    /// Reason within the type.
    pub reason: Option<Text>,
    /// Machine-readable code of the exact problem: `wrong-type`, `raised`, `out-of-range`, ….
    pub code: &'static str,
    /// One-sentence description, without the location.
    pub message: String,
    /// The argument of `raise`, if it was not a string.
    pub value: Value,
    /// Location of the form that failed.
    pub location: SourceLocation,
    /// Active calls, innermost first, at most [`RuntimeError::TRAIL`].
    pub trail: Vec<TraceEntry>,
    /// The underlying error as reported by the failed task, or nil.
    pub cause: Value,
    /// Id of the `with-limits` whose limit was reached: only a `try` around it can catch the error.
    pub(crate) omitted_frames: Option<u64>,
}

impl RuntimeError {
    /// Maximum number of calls kept in a trail.
    pub const TRAIL: usize = 32;

    /// The message prefixed with its position, as in a task's error message: `LINE:COLUMN: …`.
    pub fn headline(&self) -> String {
        format!("{}: {}", self.location.start, self.message)
    }

    /// The error object of `fusee task --json`, with location and trail in addition to the documented fields.
    pub fn to_json(&self) -> Json {
        // The raised value may contain functions or be nested too deeply for JSON; then its printed form is
        // used.
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

    /// The error as a map, as seen by `get` and `get-field`.
    pub(crate) fn to_value(&self) -> Value {
        let text = |text: &str| Value::text(text);
        let number = |number: usize| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        let mut entries = vec![(Text::from("type"), Value::Text(self.kind.clone()))];
        if let Some(reason) = &self.reason {
            entries.push((Text::from("reason"), Value::Text(reason.clone())));
        }
        entries.push((Text::from("message"), text(&self.message)));
        entries.push((Text::from("code"), text(self.code)));
        entries.push((Text::from("file"), text(&self.location.file)));
        entries.push((Text::from("line"), number(self.location.start.line)));
        entries.push((Text::from("column"), number(self.location.start.column)));
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

    /// A copy for `raise` of a caught error; keeps location and trail but is catchable everywhere.
    pub(crate) fn catchable_copy(&self) -> RuntimeError {
        let mut again = self.clone();
        again.omitted_frames = None;
        again
    }

    pub(crate) fn drain_children(&mut self, pending: &mut Vec<Value>) {
        pending.push(std::mem::take(&mut self.value));
        pending.push(std::mem::take(&mut self.cause));
    }
}

impl Drop for RuntimeError {
    fn drop(&mut self) {
        let mut pending = Vec::new();
        self.drain_children(&mut pending);
        drop_iteratively(pending);
    }
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Some(location) => write!(f, "{} at {location}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

/// Location, message, calls and causes, one per line.
impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.message)?;
        for call in &self.trail {
            write!(f, "\n  in {call}")?;
        }
        let mut cause = &self.cause;
        // A chain of causes is as long as tasks are nested; one made up by a program could be longer.
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

impl fmt::Debug for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An error that has no location yet, as returned by library functions. One word wide, since success is
/// common.
#[derive(Debug)]
pub(crate) struct UnlocatedError(Box<ErrorReport>);

/// Contents of a [`UnlocatedError`].
#[derive(Debug)]
pub(crate) struct ErrorReport {
    pub(crate) kind: Text,
    pub(crate) reason: Option<Text>,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) value: Value,
    pub(crate) how: ErrorHandling,
}

/// How the machine handles a [`UnlocatedError`].
#[derive(Debug)]
pub(crate) enum ErrorHandling {
    /// Raise it at the current form.
    Raise,
    /// Raise this fault, which already has a location.
    Whole(Box<RuntimeError>),
    /// Measure live memory; retry if this many bytes are free, else abort.
    NeedMemory(usize),
    /// Abort: the step limit is reached.
    OutOfSteps,
}

impl UnlocatedError {
    /// An error in the program.
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self::with_kind("TASK_FAILURE", "unexpected_error", code, message.into(), ErrorHandling::Raise)
    }

    /// An input that does not match its declaration.
    pub(crate) fn invalid(code: &'static str, message: impl Into<String>) -> Self {
        Self::with_kind(
            "VALIDATION_ERROR",
            "input_validation_failure",
            code,
            message.into(),
            ErrorHandling::Raise,
        )
    }

    /// A limit was reached.
    pub(crate) fn exhausted(reason: &'static str, message: impl Into<String>) -> Self {
        Self::with_kind("RESOURCE_EXHAUSTION", reason, "limit-reached", message.into(), ErrorHandling::Raise)
    }

    /// The allocation may exceed the memory limit; live memory must be measured.
    pub(crate) fn need_memory(bytes: usize) -> Self {
        Self::with_kind(
            "RESOURCE_EXHAUSTION",
            "memory",
            "limit-reached",
            String::new(),
            ErrorHandling::NeedMemory(bytes),
        )
    }

    pub(crate) fn out_of_steps() -> Self {
        Self::with_kind(
            "RESOURCE_EXHAUSTION",
            "steps",
            "limit-reached",
            String::new(),
            ErrorHandling::OutOfSteps,
        )
    }

    /// The error raised by `raise`.
    pub(crate) fn raised(kind: Text, reason: Option<Text>, message: String, value: Value) -> Self {
        Self(Box::new(ErrorReport {
            kind,
            reason,
            code: "raised",
            message,
            value,
            how: ErrorHandling::Raise,
        }))
    }

    pub(crate) fn into_report(self) -> ErrorReport {
        *self.0
    }

    fn with_kind(kind: &str, reason: &str, code: &'static str, message: String, how: ErrorHandling) -> Self {
        let (kind, reason) = (Text::from(kind), Some(Text::from(reason)));
        Self(Box::new(ErrorReport { kind, reason, code, message, value: Value::Nil, how }))
    }
}

impl From<ErrorReport> for UnlocatedError {
    fn from(report: ErrorReport) -> Self {
        Self(Box::new(report))
    }
}

impl From<Box<RuntimeError>> for UnlocatedError {
    fn from(fault: Box<RuntimeError>) -> Self {
        Self::with_kind(
            "TASK_FAILURE",
            "unexpected_error",
            fault.code,
            String::new(),
            ErrorHandling::Whole(fault),
        )
    }
}
