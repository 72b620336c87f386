//! Test support: a workspace on disk and the standard tools, called the way the engine calls them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::tool::shell::CommandSettings;
use crate::tool::{CallContext, CallLimits, InterruptedOutcome, PreparedCall, ToolOutput};
use crate::toolbox::Toolbox;
use crate::workspace::Workspace;

pub(crate) struct TestWorkspace {
    directory: tempfile::TempDir,
    toolbox: Toolbox,
    pub(crate) context: CallContext,
    runtime: tokio::runtime::Runtime,
}

impl TestWorkspace {
    /// Creates a workspace with these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (path, content) in files {
            put(directory.path(), path, content.as_bytes());
        }
        let context = CallContext {
            workspace: Arc::new(Workspace::open(directory.path()).unwrap()),
            call_id: "call_1".to_owned(),
            cancel: CancellationToken::new(),
            progress: Arc::new(|_| {}),
            limits: CallLimits::default(),
            trace_parent: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { directory, toolbox: Toolbox::standard(CommandSettings::default()), context, runtime }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        put(self.directory.path(), path, content.as_ref());
    }

    pub(crate) fn content(&self, path: &str) -> String {
        String::from_utf8(fs::read(self.path(path)).unwrap()).unwrap()
    }

    pub(crate) fn arguments(&self, tool: &str, arguments: &Value) -> Result<Value, String> {
        crate::tool::arguments::parse(&arguments.to_string(), self.toolbox.find(tool).unwrap().definition())
    }

    pub(crate) fn prepare(&self, tool: &str, arguments: &Value) -> Result<PreparedCall, ToolOutput> {
        let arguments = self.arguments(tool, arguments).map_err(ToolOutput::error)?;
        self.runtime.block_on(self.toolbox.find(tool).unwrap().prepare(arguments, &self.context))
    }

    pub(crate) fn perform(&self, tool: &str, prepared: PreparedCall) -> ToolOutput {
        self.runtime.block_on(self.toolbox.find(tool).unwrap().perform(prepared, &self.context))
    }

    pub(crate) fn call(&self, tool: &str, arguments: Value) -> ToolOutput {
        match self.prepare(tool, &arguments) {
            Ok(prepared) => self.perform(tool, prepared),
            Err(output) => output,
        }
    }

    /// Answer of a call that must succeed.
    pub(crate) fn answer(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments);
        assert!(output.ok, "{}", output.content);
        output.content
    }

    /// Answer of a call that must fail.
    pub(crate) fn refusal(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments);
        assert!(!output.ok, "{}", output.content);
        assert_eq!((&output.seen, &output.changed), (&Vec::new(), &Vec::new()));
        output.content
    }

    pub(crate) fn settle(&self, tool: &str, arguments: &Value, intent: &Value) -> InterruptedOutcome {
        let arguments = self.arguments(tool, arguments).unwrap();
        self.runtime.block_on(self.toolbox.find(tool).unwrap().settle(&arguments, intent, &self.context))
    }
}

fn put(root: &Path, path: &str, content: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}
