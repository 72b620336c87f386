//! What a reply under a grammar may name: tools that are of use now, and paths. A small model that can only name files that
//! are there, and none whose text it has before it already, does not go astray between them. `course` puts this into the
//! request.

use fusee_journal::{Call, Kind, Stop};
use fusee_model::{EditFormat, Message, ToolFormat};
use fusee_tools::{Definition, Workspace};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::driver::Driver;
use crate::flow::Asked;

/// More files than this are not listed: the grammar would grow with them, and a model that works in a large tree has to
/// search anyway.
const FEW: usize = 40;

/// A file this long is shown whole, with room to spare.
const SHORT_BYTES: u64 = 32 << 10;

/// A file that a model writes anew, by its profile, is at most so long: it has to fit into one reply.
const WHOLE_BYTES: u64 = 8 << 10;

/// A file there was at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listed {
    path: String,
    bytes: u64,
}

/// Which paths a tool may be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Paths {
    /// Any.
    Free,
    /// One of these.
    Among(Vec<String>),
    /// There is none left, or nothing else to use it on: the tool is closed.
    None,
}

impl Driver<'_> {
    /// Takes down which files there are, where replies are held to a grammar and the files are few.
    pub(crate) async fn list_files(&mut self) -> Result<(), Stop> {
        if self.session().model.dialect().traits.tool_format != ToolFormat::Schema {
            return Ok(());
        }
        let branch = self.task.branch.clone();
        let call = Call { branch, kind: Kind::Environment, callee: "files".to_owned(), args: Value::Null };
        let workspace = self.session().workspace.clone();
        let body = Box::new(move || {
            let list = async move {
                let listed = tokio::task::spawn_blocking(move || listed(&workspace)).await;
                serde_json::to_value(listed.unwrap_or_default()).unwrap_or_default()
            };
            Box::pin(list) as futures_util::future::BoxFuture<'_, Value>
        });
        let recorded = self.engine().step(call, body).await?;
        self.passed(&recorded);
        let files: Vec<Listed> = recorded.read()?;
        self.files = (1..=FEW).contains(&files.len()).then_some(files);
        Ok(())
    }

    /// Which paths a tool may be given now. A new file can have any name, unless tests are protected: then the task is
    /// one of a benchmark, about files that are there, and a name that is not listed is most often a test's.
    pub(crate) fn paths_of(&self, tool: &str) -> Paths {
        let Some(files) = &self.files else { return Paths::Free };
        let is_new = |path: &&str| !files.iter().any(|file| file.path == *path);
        let made = self.facts.changed().map(|(path, _)| path).filter(is_new);
        let all = files.iter().map(|file| file.path.as_str()).chain(made);
        let left: Vec<String> = match tool {
            "read_file" | "read_files" => {
                all.filter(|path| !self.has_before_it(path)).map(str::to_owned).collect()
            }
            "edit_file" | "apply_patch" if self.writes_whole() => return Paths::None,
            "edit_file" | "write_file" => match self.task.rules.protected.as_deref() {
                Some(protected) => all.filter(|path| !protected.covers(path)).map(str::to_owned).collect(),
                None if tool == "edit_file" => all.map(str::to_owned).collect(),
                None => return Paths::Free,
            },
            "shell_poll" | "shell_kill" if !self.facts.commands => return Paths::None,
            _ => return Paths::Free,
        };
        if left.is_empty() { Paths::None } else { Paths::Among(left) }
    }

    /// Whether a tool needs no more than paths: files that are short are read whole, and a model that is not asked which
    /// lines it wants does not read the same file line by line.
    pub(crate) fn is_bare(&self, tool: &str) -> bool {
        tool == "read_file" && self.files_hold_at_most(SHORT_BYTES)
    }

    /// Whether files are changed by writing them anew and in no other way: those of a model that is good at that, by its
    /// profile, and mixes the ways up.
    fn writes_whole(&self) -> bool {
        self.session().model.dialect().traits.edit_format == EditFormat::Whole
            && self.files_hold_at_most(WHOLE_BYTES)
            && self.session().toolbox.find("write_file").is_some()
            && self.open("write_file").is_ok()
            && self.paths_of("write_file") != Paths::None
    }

    /// Whether the files are listed and none of them is longer.
    fn files_hold_at_most(&self, bytes: u64) -> bool {
        self.files.as_ref().is_some_and(|files| files.iter().all(|file| file.bytes <= bytes))
    }

    /// Of these tools all, or after a turn that brought the phase no further only those that do: a small model goes round in
    /// circles between tools that are of no use now, and telling it does not help.
    pub(crate) fn pressed<'d>(&self, all: Vec<&'d Definition>) -> Vec<&'d Definition> {
        let of_use = |definition: &&Definition| {
            let asked = Asked::of(definition);
            self.conduct.brings_on(asked) && self.paths_of(asked.name) != Paths::None
        };
        let stands_still = self.files.is_some() && self.turns.turn_index() > self.standing.1;
        if stands_still && all.iter().any(of_use) { all.into_iter().filter(of_use).collect() } else { all }
    }

    /// Whether the whole text of a file, as it is now, stands in the next request.
    fn has_before_it(&self, path: &str) -> bool {
        let Some((call, at)) = self.rereads.whole(path) else { return false };
        let is_it = |message: &Message| matches!(message, Message::Tool { call_id, .. } if call_id == call);
        let messages = self.conversation.request().messages();
        self.facts.contents().contains_key(path) && messages.get(at).is_some_and(is_it)
    }
}

fn listed(workspace: &Workspace) -> Vec<Listed> {
    let bytes =
        |path: &str| std::fs::metadata(workspace.root().join(path)).map_or(u64::MAX, |file| file.len());
    let files = workspace.files(FEW + 1).into_iter();
    files.map(|path| Listed { bytes: bytes(&path), path }).collect()
}
