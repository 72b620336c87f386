//! What the keeper costs: a command under it against a bare `sh -c`, in one run, medians.
#![expect(clippy::unwrap_used, reason = "a bench program")]

use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

use fusee_tools::sandbox::{Allowance, CommandRequest, init};
use fusee_tools::{Environment, Sandbox};

const ROUNDS: usize = 400;

fn main() {
    let keeper = init().unwrap();
    let environment = Environment::allowed(std::env::vars_os());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // A process of our size when it works: what a bare fork would have to copy.
    let ballast = vec![1u8; 20 * 1024 * 1024];
    let (mut bare, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(timed(|| {
            #[expect(clippy::disallowed_methods, reason = "the floor that is measured against")]
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
                allowance: Allowance::default(),
            };
            // As the engine does it: on a worker, without a word to another thread.
            runtime.block_on(keeper.run(request, |_| {}, std::future::pending())).unwrap();
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
