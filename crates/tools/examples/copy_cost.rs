//! Cost of a copy of a project with 50 000 files, in which an answer can be tried: as an overlay of the namespace
//! sandbox (with its first command, less the same command in the workspace itself), and as files. Prints one line
//! each, in milliseconds. `cargo xtask bench copy` runs this and knows the target.
#![expect(clippy::unwrap_used, reason = "a benchmark")]

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use fusee_tools::sandbox::{
    CommandRequest, Network, Policy, ResourceLimits, SandboxInputs, SandboxStrength, init, probe,
};
use fusee_tools::workspace_copy::{CopyKind, WorkspaceCopy};
use fusee_tools::{CommandEnvironment, Sandbox};

const FOLDERS: usize = 500;
const FILES: usize = 100;
const ROUNDS: usize = 15;

fn main() {
    let fork_server = init().unwrap();
    let environment = CommandEnvironment::allowed(std::env::vars_os());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let workspace = tempfile::tempdir_in("/var/tmp").unwrap();
    let workspace = workspace.path().canonicalize().unwrap();
    fill(&workspace);
    let policy = || {
        let inputs = SandboxInputs {
            workspace: &workspace,
            environment: &environment,
            own: &[],
            network: Network::Own,
        };
        Policy::defaults(&inputs).unwrap()
    };
    let run = |sandbox: &Sandbox| {
        let request = CommandRequest {
            command: "test -f folder0/file0.py && echo x > folder0/file0.py",
            directory: std::fs::File::open(&workspace).unwrap().into(),
            input: None,
            environment: &environment,
            sandbox,
            limits: ResourceLimits::defaults(),
        };
        let ended = runtime.block_on(fork_server.run(request, |_| {}, std::future::pending())).unwrap();
        assert_eq!(ended.ending, fusee_tools::sandbox::CommandEnd::Exited(0));
    };
    let mut out = std::io::stdout();
    if runtime.block_on(probe(&fork_server)).strength == SandboxStrength::Namespaces {
        let (mut plain, mut overlaid) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let sandbox = Sandbox::namespaces(policy());
            plain.push(timed(|| run(&sandbox)));
            let policy = policy();
            overlaid.push(timed(|| {
                let copy = WorkspaceCopy::create(&workspace, CopyKind::Overlay).unwrap();
                let substitute = Some(copy.substitute());
                run(&Sandbox::namespaces(Policy { substitute, ..policy }));
            }));
        }
        let cost = median(&mut overlaid).saturating_sub(median(&mut plain));
        writeln!(out, "as an overlay\t{:.4}", cost.as_secs_f64() * 1000.0).unwrap();
    }
    let files = timed(|| drop(WorkspaceCopy::create(&workspace, CopyKind::Files).unwrap()));
    writeln!(out, "as files\t{:.4}", files.as_secs_f64() * 1000.0).unwrap();
}

fn fill(workspace: &Path) {
    for folder in 0..FOLDERS {
        let folder = workspace.join(format!("folder{folder}"));
        std::fs::create_dir(&folder).unwrap();
        for file in 0..FILES {
            std::fs::write(folder.join(format!("file{file}.py")), "def f():\n    return 1\n".repeat(20))
                .unwrap();
        }
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
