//! Scans a directory for changes whenever a line arrives on stdin, and prints how long the scan took in
//! milliseconds and how many changes it found. `cargo xtask bench` compares this with `git status`. The first
//! line of output is the initial scan.
#![expect(clippy::print_stdout, clippy::expect_used, reason = "a benchmark")]

use std::path::PathBuf;
use std::time::Instant;

use fusee_tools::Workspace;

fn main() {
    let directory = std::env::args_os().nth(1).map(PathBuf::from).expect("a directory");
    let workspace = Workspace::open(&directory).expect("a workspace");
    let begun = Instant::now();
    drop(workspace.start_tracking());
    println!("{} 0", begun.elapsed().as_secs_f64() * 1000.0);
    for line in std::io::stdin().lines() {
        line.expect("a line");
        let begun = Instant::now();
        let changes = workspace.scan_changes();
        println!("{} {}", begun.elapsed().as_secs_f64() * 1000.0, changes.len());
    }
}
