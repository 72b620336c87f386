//! Runs the program of a hook: outside the sandbox, in the workspace, with the environment of commands. Time and
//! output are bounded, and the program ends with this process.

use std::fs::File;
use std::time::Duration;

use fusee_model::CancellationToken;
use fusee_tools::sandbox::{CommandEnd, CommandRequest};
use fusee_tools::{CommandSettings, Sandbox};

use super::HookSpec;
use super::runner::HookPlace;

/// Maximum bytes of each stream; a hook that writes more is killed.
const MAX_OUTPUT: usize = 1 << 20;

/// Output and exit code of a hook that exited.
#[derive(Debug)]
pub(super) struct HookEnd {
    pub(super) code: i32,
    pub(super) output: String,
    pub(super) errors: String,
}

/// Why a hook gave no answer.
#[derive(Debug)]
pub(super) enum HookFailure {
    /// It could not be started or did not exit by itself.
    Failed(String),
    /// The task was cancelled.
    Cancelled,
}

/// One stream of a hook.
#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    overflowed: bool,
}

impl Stream {
    fn add(&mut self, piece: &[u8], stop: &CancellationToken) {
        if self.bytes.len() + piece.len() > MAX_OUTPUT {
            self.overflowed = true;
            stop.cancel();
        } else {
            self.bytes.extend_from_slice(piece);
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Runs a hook to its end.
pub(super) async fn run(
    hook: &HookSpec,
    commands: &CommandSettings,
    place: &HookPlace,
    input: &[u8],
    cancel: &CancellationToken,
) -> Result<HookEnd, HookFailure> {
    let failed = |reason: String| Err(HookFailure::Failed(reason));
    let Some(fork_server) = &commands.fork_server else {
        return failed("the fork server is not running".to_owned());
    };
    let directory = &place.directory;
    let entered = match File::open(directory) {
        Ok(entered) => entered,
        Err(error) => return failed(format!("{} cannot be entered: {error}", directory.display())),
    };
    let root = place.root.display().to_string();
    let environment = commands
        .environment
        .clone()
        .with(["CLAUDE_PROJECT_DIR", "FUSEE_PROJECT_DIR"].map(|name| (name.to_owned(), root.clone())));
    let request = CommandRequest {
        command: &hook.command,
        directory: entered.into(),
        input: Some(input),
        environment: &environment,
        sandbox: &Sandbox::Off,
        limits: commands.limits,
    };
    let (mut output, mut errors) = (Stream::default(), Stream::default());
    let stop = cancel.child_token();
    let limit = Duration::from_secs(hook.timeout_s);
    let mut late = false;
    let ended = async {
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(limit) => late = true,
        }
    };
    let finished = fork_server
        .run_with_errors(request, |piece| output.add(piece, &stop), |piece| errors.add(piece, &stop), ended)
        .await;
    if cancel.is_cancelled() {
        return Err(HookFailure::Cancelled);
    }
    if output.overflowed || errors.overflowed {
        return failed(format!("it wrote more than {MAX_OUTPUT} bytes"));
    }
    if late {
        return failed(format!("it did not end within {} s", hook.timeout_s));
    }
    match finished.map(|finished| finished.ending) {
        Ok(CommandEnd::Exited(code)) => Ok(HookEnd { code, output: output.text(), errors: errors.text() }),
        Ok(CommandEnd::Signalled(signal)) => failed(format!("it was ended by signal {signal}")),
        Err(failure) => failed(failure.to_string()),
    }
}
