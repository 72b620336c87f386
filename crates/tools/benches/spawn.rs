//! Overhead of the fork server: a command started through it against a bare `sh -c`, in one run, as medians.
#![expect(clippy::unwrap_used, reason = "a benchmark")]

use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use fusee_tools::sandbox::{CommandRequest, ResourceLimits, init};
use fusee_tools::{CommandEnvironment, Sandbox};

const ROUNDS: usize = 400;

fn main() {
    let fork_server = init().unwrap();
    let environment = CommandEnvironment::allowed(std::env::vars_os());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Brings this process to its usual working size, which a plain fork would have to copy.
    let ballast = vec![1u8; 20 * 1024 * 1024];
    let (mut bare, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(timed(|| {
            #[expect(clippy::disallowed_methods, reason = "the baseline of the measurement")]
            let status = Command::new("/bin/sh").args(["-c", "true"]).output().unwrap();
            assert!(status.status.success());
        }));
        kept.push(timed(|| {
            let directory = std::fs::File::open("/tmp").unwrap().into();
            let request = CommandRequest {
                command: "true",
                directory,
                input: None,
                environment: &environment,
                sandbox: &Sandbox::Off,
                limits: ResourceLimits::default(),
            };
            // Like the engine: on a worker, without communication between threads.
            runtime.block_on(fork_server.run(request, |_| {}, std::future::pending())).unwrap();
        }));
    }
    assert!(ballast.len() > 1);
    let (bare, kept) = (median(bare), median(kept));
    let mut out = std::io::stdout();
    writeln!(out, "bare sh -c true   p50 {bare:?}").unwrap();
    writeln!(out, "under the keeper  p50 {kept:?}, {:?} more", kept.saturating_sub(bare)).unwrap();
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
