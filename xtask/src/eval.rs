//! `cargo xtask eval`: builds the programs and starts the test kit's `eval` program, which runs exercises with a real
//! model. Not part of the tests: it takes long, and it measures the model as much as Fusee.

use std::path::PathBuf;

use crate::{Outcome, root, step, target_dir};

/// Starts `eval` with the paths of this checkout where the arguments do not name others.
pub(crate) fn run(args: &[String]) -> Outcome {
    let has = |flag: &str| args.iter().any(|arg| arg == flag || arg.starts_with(&format!("{flag}=")));
    let command = args.first().map_or("", String::as_str);
    if command == "run" && has("--fusee") && !has("--fusee-binary") {
        step::run("build", step::cargo(), ["build", "--locked", "--release", "-p", "fusee-cli"])?;
    }
    let suite = root().join("testkit/exercises");
    let own = target_dir().join("eval");
    let defaults: Vec<(&str, PathBuf)> = match command {
        "check" => vec![("--suite", suite)],
        "run" => vec![
            ("--suite", suite),
            ("--out", own.join("results")),
            ("--fusee-binary", target_dir().join("release/fusee")),
            ("--peers", own.join("peers")),
        ],
        "report" => vec![("--suite", suite), ("--out", own.join("results"))],
        "peers" => vec![("--peers", own.join("peers"))],
        _ => Vec::new(),
    };
    let defaults = defaults.into_iter().filter(|(flag, _)| !has(flag));
    let defaults = defaults.flat_map(|(flag, path)| [flag.to_owned(), path.to_string_lossy().into_owned()]);
    let fixed = ["run", "--quiet", "--locked", "-p", "fusee-testkit", "--bin", "eval", "--"];
    let words = fixed.into_iter().map(str::to_owned).chain(args.iter().cloned()).chain(defaults);
    step::run("eval", step::cargo(), words)
}
