//! The beginning of a run as that of another: rows are copied as they are, and content is shared.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::ops::WriteOp;
use crate::{Branch, Journal, JournalError, RunId, StepKey, StepKind, StepRequest, blob};

/// What a run takes over from another one.
#[derive(Clone, Debug)]
pub struct RunCopy {
    /// The run that is copied.
    pub from: RunId,
    /// Number of steps of each branch to copy.
    pub steps: BTreeMap<Branch, u64>,
    /// Number of the last event to copy.
    pub last_seq: u64,
    /// Settings of the copy, which replace those of the original.
    pub settings: Value,
    /// The name of the copy's model: steps of the model by the first name are copied under the second.
    pub model: Option<(String, String)>,
    /// A step that the copy is about to execute, with its intent. Its branch must not be one of the original's.
    pub first: Option<(StepRequest, Value)>,
}

impl RunCopy {
    /// The rows of the copy.
    pub(super) fn rows(
        self,
        journal: &Journal,
        from: i64,
        run: &RunId,
    ) -> Result<Vec<WriteOp>, JournalError> {
        let Self { from: name, steps, last_seq, settings, model, first } = self;
        let mut rows = journal.read(|reader| reader.copy_rows(from, &name, &steps, last_seq))?;
        let mut content = Vec::new();
        let mut encode = |value: &Value| {
            blob::write(value, &mut |text| {
                let hash = blob::hash(text);
                content.push(WriteOp::Content { hash, text: text.to_owned() });
                hash
            })
        };
        let settings_key = StepKey { branch: Branch::main(), n: 0 };
        for row in &mut rows {
            match row {
                WriteOp::Step { key, kind: StepKind::Settings, result, .. } if *key == settings_key => {
                    *result = encode(&settings);
                }
                WriteOp::Step { kind: StepKind::Model, callee, .. } => {
                    if let Some((_, new)) = model.as_ref().filter(|(old, _)| old == callee) {
                        callee.clone_from(new);
                    }
                }
                WriteOp::Event { body, .. } if body.contains("\"submission_id\":") => {
                    *body = renamed(body, name.as_str(), run.as_str(), model.as_ref());
                }
                _ => {}
            }
        }
        if let Some((StepRequest { branch, kind, callee, args }, intent)) = first {
            let (args, intent) = (encode(&args), encode(&intent));
            let (key, at_ms) = (StepKey { branch, n: 0 }, journal.now_ms());
            rows.push(WriteOp::Intent { key, kind, callee, args, intent, at_ms });
        }
        content.append(&mut rows);
        Ok(content)
    }
}

/// An event with the names of the copy: a task names its run and its model when it starts and when it ends.
fn renamed(body: &str, from: &str, to: &str, model: Option<&(String, String)>) -> String {
    let Ok(mut event) = serde_json::from_str::<Value>(body) else { return body.to_owned() };
    if let Some(Value::String(id)) = event.get_mut("submission_id")
        && let Some(rest) = id.strip_prefix(from)
        && (rest.is_empty() || rest.starts_with(':'))
    {
        *id = format!("{to}{rest}");
    }
    if let (Some((old, new)), Some(Value::String(name))) = (model, event.get_mut("model"))
        && name == old
    {
        name.clone_from(new);
    }
    event.to_string()
}
