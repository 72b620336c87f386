//! Test fixture: a workspace, the tools and a runtime for one test.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fusee_tools::{
    CallContext, CallLimits, CommandEnvironment, CommandSettings, ForkServer, ToolOutput, Toolbox, Workspace,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// No PIDs, for assertions.
pub(crate) const NONE: [i32; 0] = [];

pub(crate) type Test = fn(&Stage);

pub(crate) struct Stage {
    pub(crate) fork_server: ForkServer,
    pub(crate) toolbox: Toolbox,
    pub(crate) context: CallContext,
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) progress: Arc<Mutex<Vec<String>>>,
    root: PathBuf,
    _directory: Option<tempfile::TempDir>,
}

impl Stage {
    pub(crate) fn new(fork_server: ForkServer) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut stage = Self::at(fork_server, directory.path());
        stage._directory = Some(directory);
        stage
    }

    pub(crate) fn at(fork_server: ForkServer, root: &Path) -> Self {
        let environment = CommandEnvironment::allowed(std::env::vars_os());
        let settings = CommandSettings {
            fork_server: Some(fork_server.clone()),
            environment,
            ..CommandSettings::default()
        };
        let progress: Arc<Mutex<Vec<String>>> = Arc::default();
        let context = CallContext {
            workspace: Arc::new(Workspace::open(root).unwrap()),
            call_id: "call_1".to_owned(),
            cancel: CancellationToken::new(),
            progress: {
                let progress = Arc::clone(&progress);
                Arc::new(move |text: &str| progress.lock().push(text.to_owned()))
            },
            limits: CallLimits::default(),
            trace_parent: None,
        };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self {
            fork_server,
            toolbox: Toolbox::standard(settings),
            context,
            runtime,
            progress,
            root: root.to_owned(),
            _directory: None,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A sleep duration that no other test or test run uses, to find the process by.
    pub(crate) fn mark(&self, name: &str) -> String {
        let path = self.path(name).display().to_string();
        format!(
            "5{}",
            path.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)))
        )
    }

    /// Waits until a file holds a complete line, and returns it.
    pub(crate) fn line_of(&self, name: &str) -> String {
        let path = self.path(name);
        eventually(|| std::fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n')));
        std::fs::read_to_string(&path).unwrap().trim().to_owned()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolOutput {
        call(&self.toolbox, tool, arguments, &self.context).await
    }

    pub(crate) fn run(&self, arguments: Value) -> ToolOutput {
        self.runtime.block_on(self.call("shell", arguments))
    }
}

pub(crate) async fn call(
    toolbox: &Toolbox,
    tool: &str,
    arguments: Value,
    context: &CallContext,
) -> ToolOutput {
    let tool = toolbox.find(tool).unwrap();
    let arguments = match fusee_tools::tool::arguments::parse(&arguments.to_string(), tool.definition()) {
        Ok(arguments) => arguments,
        Err(complaint) => return ToolOutput::error(complaint),
    };
    match tool.prepare(arguments, context).await {
        Ok(prepared) => tool.perform(prepared, context).await,
        Err(output) => output,
    }
}

/// PIDs of processes with this word in their command line. Zombies have no command line.
pub(crate) fn processes_with(word: &str) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
        })
        .collect()
}

pub(crate) fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'))
}

pub(crate) fn eventually(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}
