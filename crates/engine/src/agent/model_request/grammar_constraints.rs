//! Restricts what a reply under a grammar can name: tools that are useful now, and paths. A small model goes
//! astray less if it can only name files that exist and whose text it does not already have. `course` adds
//! these restrictions to the request.

use fusee_journal::{RunAborted, StepKind, StepRequest};
use fusee_model::{EditFormat, Message, ToolFormat};
use fusee_tools::{ToolDefinition, Workspace};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::flow::ToolRef;
use crate::agent::runner::TaskRunner;

/// Maximum number of listed files: the grammar grows with them, and in a large tree the model has to search
/// anyway.
const FEW: usize = 40;

/// A file of at most this size is returned in full by a read.
const SHORT_BYTES: u64 = 32 << 10;

/// Maximum file size for models whose profile rewrites entire files: the file has to fit into one reply.
const WHOLE_BYTES: u64 = 8 << 10;

/// A file present at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkspaceFile {
    path: String,
    bytes: u64,
}

/// The paths a tool accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AllowedPaths {
    /// Any path at all.
    Free,
    /// One of these paths.
    Among(Vec<String>),
    /// No path is left, so the tool is closed.
    None,
}

impl TaskRunner<'_> {
    /// Lists the files as a step, if replies follow a grammar and the files are few.
    pub(crate) async fn list_files(&mut self) -> Result<(), RunAborted> {
        if self.session().model.dialect().traits.tool_format != ToolFormat::Schema {
            return Ok(());
        }
        let branch = self.task.branch.clone();
        let call = StepRequest {
            branch,
            kind: StepKind::Environment,
            callee: "files".to_owned(),
            args: Value::Null,
        };
        let workspace = self.session().workspace.clone();
        let body = async move {
            let listed = tokio::task::spawn_blocking(move || listed(&workspace)).await;
            listed.unwrap_or_default()
        };
        let recorded = self.engine().step(call, body).await?;
        self.passed(&recorded);
        let files: Vec<WorkspaceFile> = recorded.value;
        self.files = (1..=FEW).contains(&files.len()).then_some(files);
        Ok(())
    }

    /// The paths a tool currently accepts. A new file can have any name, unless tests are protected: then the
    /// task comes from a benchmark about existing files, and an unlisted name is most often that of a test.
    pub(crate) fn paths_of(&self, tool: &str) -> AllowedPaths {
        let Some(files) = &self.files else { return AllowedPaths::Free };
        let is_new = |path: &&str| !files.iter().any(|file| file.path == *path);
        let made = self.facts.changed().map(|(path, _)| path).filter(is_new);
        let all = files.iter().map(|file| file.path.as_str()).chain(made);
        let left: Vec<String> = match tool {
            "read_file" | "read_files" => {
                all.filter(|path| !self.has_before_it(path)).map(str::to_owned).collect()
            }
            "edit_file" | "apply_patch" if self.writes_whole() => return AllowedPaths::None,
            "edit_file" | "write_file" => match self.task.rules.protected.as_deref() {
                Some(protected) => all.filter(|path| !protected.covers(path)).map(str::to_owned).collect(),
                None if tool == "edit_file" => all.map(str::to_owned).collect(),
                None => return AllowedPaths::Free,
            },
            "shell_poll" | "shell_kill" if !self.facts.commands => return AllowedPaths::None,
            _ => return AllowedPaths::Free,
        };
        if left.is_empty() { AllowedPaths::None } else { AllowedPaths::Among(left) }
    }

    /// Whether a tool takes only paths. Short files are read in full, and a model that cannot choose lines
    /// does not read the same file line by line.
    pub(crate) fn is_bare(&self, tool: &str) -> bool {
        tool == "read_file" && self.files_hold_at_most(SHORT_BYTES)
    }

    /// Whether files may only be rewritten in full. This applies to models that are good at it, according to
    /// their profile, and that confuse the edit formats.
    fn writes_whole(&self) -> bool {
        self.session().model.dialect().traits.edit_format == EditFormat::Whole
            && self.files_hold_at_most(WHOLE_BYTES)
            && self.session().toolbox.find("write_file").is_some()
            && self.open("write_file").is_ok()
            && self.paths_of("write_file") != AllowedPaths::None
    }

    /// Whether files are listed and none exceeds `bytes`.
    fn files_hold_at_most(&self, bytes: u64) -> bool {
        self.files.as_ref().is_some_and(|files| files.iter().all(|file| file.bytes <= bytes))
    }

    /// All tools, or, after a turn without progress in the phase, only those that make progress. Small models
    /// go round in circles between tools that are useless at that point, and telling them so does not help.
    pub(crate) fn narrow_tools<'d>(&self, all: Vec<&'d ToolDefinition>) -> Vec<&'d ToolDefinition> {
        let of_use = |definition: &&ToolDefinition| {
            let asked = ToolRef::of(definition);
            self.conduct.makes_progress(asked) && self.paths_of(asked.name) != AllowedPaths::None
        };
        let stands_still = self.files.is_some() && self.turns.turn_index() > self.standing.1;
        if stands_still && all.iter().any(of_use) { all.into_iter().filter(of_use).collect() } else { all }
    }

    /// Whether the next request contains the full current text of a file.
    fn has_before_it(&self, path: &str) -> bool {
        let Some((call, at)) = self.rereads.whole(path) else { return false };
        let is_it = |message: &Message| matches!(message, Message::Tool { call_id, .. } if call_id == call);
        let messages = self.conversation.request().messages();
        self.facts.contents().contains_key(path) && messages.get(at).is_some_and(is_it)
    }
}

fn listed(workspace: &Workspace) -> Vec<WorkspaceFile> {
    let bytes =
        |path: &str| std::fs::metadata(workspace.root().join(path)).map_or(u64::MAX, |file| file.len());
    let files = workspace.files(FEW + 1).into_iter();
    files.map(|path| WorkspaceFile { bytes: bytes(&path), path }).collect()
}
