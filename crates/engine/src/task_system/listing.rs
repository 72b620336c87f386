//! The files of a task's context, each a step: the command that lists some, and the reading of a listed one.
//!
//! Both are the tools of models underneath, with the same gates and the same sandbox. A model reads in pages and
//! both streams of a command at once; a template's files are shown whole, and only stdout lists them.

use std::sync::Arc;

use fusee_journal::{BoxFuture, Call, Kind, Stop};
use fusee_tools::{
    CallContext, Definition, Limits, NotShown, Prepared, Repeat, Secrets, Seen, Settled, Tool, ToolOutput,
    read_whole,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agent::Calling;
use crate::workflow::RunScript;

/// Bytes of stdout that a command may list files with.
pub(super) const LISTING_BYTES: usize = 256 * 1024;

/// The shell, with stdout apart from stderr and kept as far as files may be listed.
pub(super) struct ListingShell {
    shell: Arc<dyn Tool>,
    script: RunScript,
}

impl ListingShell {
    pub(super) fn new(shell: &Arc<dyn Tool>) -> Self {
        Self { shell: Arc::clone(shell), script: RunScript(Arc::clone(shell)) }
    }
}

impl Tool for ListingShell {
    fn definition(&self) -> &Definition {
        self.shell.definition()
    }

    fn repeat(&self) -> Repeat {
        self.shell.repeat()
    }

    fn prepare<'a>(
        &'a self,
        arguments: Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Prepared, ToolOutput>> {
        self.script.prepare(arguments, context)
    }

    fn perform<'a>(&'a self, prepared: Prepared, context: &'a CallContext) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let limits = Limits { output_head: LISTING_BYTES, ..context.limits };
            let context = CallContext { limits, ..context.clone() };
            self.script.perform(prepared, &context).await
        })
    }

    fn settle<'a>(
        &'a self,
        arguments: &'a Value,
        intent: &'a Value,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Settled> {
        self.script.settle(arguments, intent, context)
    }
}

/// A listed file, as the journal keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Listed {
    ok: bool,
    /// Its lines, or why there are none.
    pub(super) content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    seen: Vec<Seen>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_shown: Option<Why>,
}

/// Why a file is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Why {
    NotText,
    TooLarge,
    Unread,
}

impl Listed {
    /// What came of reading it, without secrets that are known.
    pub(super) async fn read(path: &str, most: usize, context: &CallContext, secrets: &Secrets) -> Self {
        let refused = |why, content| Self { ok: false, content, seen: Vec::new(), not_shown: Some(why) };
        match read_whole(path, most as u64, context).await {
            Ok(file) => {
                let mut content = file.text;
                secrets.remove_from(&mut content);
                Self { ok: true, content, seen: vec![file.seen], not_shown: None }
            }
            Err(NotShown::NotText(said)) => refused(Why::NotText, said),
            Err(NotShown::TooLarge(bytes)) => refused(Why::TooLarge, format!("it has {bytes} bytes")),
            Err(NotShown::Unread(said)) => refused(Why::Unread, said),
        }
    }

    /// The same as a step.
    pub(super) async fn step(calling: &Calling<'_>, path: &str, most: usize) -> Result<Self, Stop> {
        let call = Call {
            branch: calling.branch.clone(),
            kind: Kind::Tool,
            callee: "read_file".to_owned(),
            args: json!({ "path": path }),
        };
        let (context, secrets) = (calling.context("context"), &calling.session.secrets);
        let body = Box::new(move || {
            let read = async move {
                let listed = Self::read(path, most, &context, secrets).await;
                serde_json::to_value(listed).unwrap_or_default()
            };
            Box::pin(read) as BoxFuture<'_, Value>
        });
        calling.engine.step(call, body).await?.read()
    }

    /// Why there is nothing to show, if so.
    pub(super) fn not_shown(&self) -> Option<Why> {
        self.not_shown.or((!self.ok).then_some(Why::Unread))
    }
}
