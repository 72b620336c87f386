//! Restricts what a reply under a grammar can name: tools that are useful now, and paths. A small model goes
//! astray less if it can only name files that exist and whose text it does not already have.

use fusee_model::{AllowedOutput, AllowedTool, EditFormat, RequestOptions};
use fusee_tools::ToolDefinition;

use crate::agent::completion::verification::Verification;
use crate::agent::conversation::Conversation;
use crate::agent::conversation::known_files::KnownFiles;
use crate::agent::conversation::sectioned_prompt::RenderedPrompt;
use crate::agent::flow::{FlowState, ToolRef};
use crate::agent::task::AgentTask;

/// A file of at most this size is returned in full by a read.
const SHORT_BYTES: u64 = 32 << 10;

/// Maximum file size for models whose profile rewrites entire files: the file has to fit into one reply.
const WHOLE_BYTES: u64 = 8 << 10;

/// The paths a tool accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AllowedPaths {
    /// Any path at all.
    Free,
    /// One of these paths.
    Among(Vec<String>),
    /// No path is left, so the tool is closed.
    None,
}

/// The state that decides what the model can call now.
pub(crate) struct OpenCalls<'a> {
    pub(crate) task: &'a AgentTask,
    pub(crate) flow: &'a FlowState,
    pub(crate) files: &'a KnownFiles,
    pub(crate) verification: &'a Verification,
    pub(crate) conversation: &'a Conversation<'a>,
    pub(crate) turn_index: u32,
}

impl OpenCalls<'_> {
    /// Options of the next request. With a gate or a grammar, they list the currently open tools: under a
    /// grammar, a call that would be refused cannot even be generated.
    pub(crate) fn options(&self) -> RequestOptions {
        let session = &self.task.session;
        let mut options = session.options.clone();
        let sample = self.task.rules.sample.as_ref();
        if let Some(sample) = sample {
            // The first answer is the most likely one; the others differ from it.
            options.temperature = sample.temperature.or(options.temperature).or(Some(0.0));
        }
        if self.flow.is_gated() || self.files.listed().is_some() {
            let offered = session.definitions().filter(|definition| self.flow.offers(definition));
            let offered = self.narrow_tools(offered.collect());
            let open = self.flow.open_among(offered.into_iter());
            let prompt = self.conversation.prompt.as_ref();
            let sections = prompt.into_iter().flat_map(RenderedPrompt::openers).map(str::to_owned);
            let ending = self.verification.can_finish(self.flow);
            let names = open.map(str::to_owned).chain(sections).filter(|name| ending || name != "finish");
            let tools = names.filter_map(|name| self.allowed(name)).collect();
            options.open = Some(AllowedOutput { tools, answer: ending });
        }
        options
    }

    fn allowed(&self, name: String) -> Option<AllowedTool> {
        let paths = match self.paths_of(&name) {
            AllowedPaths::Free => Vec::new(),
            AllowedPaths::Among(paths) => paths,
            AllowedPaths::None => return None,
        };
        // Short files are read in full, and a model that cannot choose lines does not read the same file line
        // by line.
        let bare = name == "read_file" && self.files.all_smaller_than(SHORT_BYTES);
        Some(AllowedTool { bare, name, paths })
    }

    /// The paths a tool currently accepts. A new file can have any name, unless tests are protected: then the
    /// task comes from a benchmark about existing files, and an unlisted name is most often that of a test.
    fn paths_of(&self, tool: &str) -> AllowedPaths {
        let (Some(files), facts) = (self.files.listed(), &self.flow.facts) else { return AllowedPaths::Free };
        let is_new = |path: &&str| !files.iter().any(|file| file.path == *path);
        let made = facts.changed().map(|(path, _)| path).filter(is_new);
        let all = files.iter().map(|file| file.path.as_str()).chain(made);
        let left: Vec<String> = match tool {
            "read_file" | "read_files" => {
                all.filter(|path| !self.has_current_text(path)).map(str::to_owned).collect()
            }
            "edit_file" | "apply_patch" if self.writes_whole() => return AllowedPaths::None,
            "edit_file" | "write_file" => match self.task.rules.protected.as_deref() {
                Some(protected) => all.filter(|path| !protected.covers(path)).map(str::to_owned).collect(),
                None if tool == "edit_file" => all.map(str::to_owned).collect(),
                None => return AllowedPaths::Free,
            },
            "shell_poll" | "shell_kill" if !facts.commands => return AllowedPaths::None,
            _ => return AllowedPaths::Free,
        };
        if left.is_empty() { AllowedPaths::None } else { AllowedPaths::Among(left) }
    }

    /// Whether files may only be rewritten in full. This applies to models that are good at it, according to
    /// their profile, and that confuse the edit formats.
    fn writes_whole(&self) -> bool {
        let session = &self.task.session;
        session.model.dialect().traits.edit_format == EditFormat::Whole
            && self.files.all_smaller_than(WHOLE_BYTES)
            && session.toolbox.find("write_file").is_some()
            && self.flow.open(session, "write_file").is_ok()
            && self.paths_of("write_file") != AllowedPaths::None
    }

    /// All tools, or, after a turn without progress in the phase, only those that make progress. Small models
    /// go round in circles between tools that are useless at that point, and telling them so does not help.
    fn narrow_tools<'d>(&self, all: Vec<&'d ToolDefinition>) -> Vec<&'d ToolDefinition> {
        let of_use = |definition: &&ToolDefinition| {
            let asked = ToolRef::new(definition);
            self.flow.makes_progress(asked) && self.paths_of(asked.name) != AllowedPaths::None
        };
        let stuck = self.files.listed().is_some() && self.flow.is_stuck(self.turn_index);
        if stuck && all.iter().any(of_use) { all.into_iter().filter(of_use).collect() } else { all }
    }

    /// Whether the next request contains the full current text of a file.
    fn has_current_text(&self, path: &str) -> bool {
        let messages = self.conversation.history.request().messages();
        self.flow.facts.contents().contains_key(path) && self.files.is_full_text_in(path, messages)
    }
}
