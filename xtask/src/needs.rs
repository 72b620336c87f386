//! The programs our commands need, why, and where they come from when they are missing.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{Outcome, stage};

/// A program that must be on the path.
pub(crate) struct Need {
    program: &'static str,
    why: &'static str,
    source: Source,
}

enum Source {
    /// `cargo install --locked` with these arguments.
    Cargo(&'static [&'static str]),
    /// Packages of the distribution, by their names with blanks between, installed where we may.
    Apt(&'static str),
    /// Part of the Rust toolchain.
    Rustup(&'static str),
}

/// Runs the tests, each in a process of its own.
const NEXTEST: Need = Need {
    program: "cargo-nextest",
    why: "runs the tests",
    // Without its self-update, which would bring a TLS stack and a downloader to build.
    source: Source::Cargo(&["cargo-nextest", "--no-default-features", "--features", "default-no-update"]),
};

pub(crate) const TEST: &[Need] = &[
    NEXTEST,
    Need { program: "git", why: "makes the projects of the tests", source: Source::Apt("git") },
    Need {
        program: "cc",
        why: "builds SQLite and the library that kills at a journal write",
        source: Source::Apt("gcc"),
    },
    Need { program: "tmux", why: "is the terminal of the conversation's tests", source: Source::Apt("tmux") },
    Need { program: "python3", why: "runs the demo project's tests", source: Source::Apt("python3") },
    Need {
        program: "xmllint",
        why: "gives a second verdict on templates",
        source: Source::Apt("libxml2-utils"),
    },
    Need {
        program: "go",
        why: "is tried in the sandbox, as cargo, node and python are",
        source: Source::Apt("golang-go"),
    },
    Need { program: "npm", why: "installs real MCP servers, which node runs", source: Source::Apt("npm") },
];

pub(crate) const LOCAL: &[Need] = &[
    NEXTEST,
    Need { program: "cmake", why: "builds llama.cpp", source: Source::Apt("cmake") },
    Need { program: "c++", why: "compiles llama.cpp", source: Source::Apt("g++") },
    Need { program: "clang", why: "reads llama.cpp's headers", source: Source::Apt("clang libclang-dev") },
    Need { program: "python3", why: "installs the model", source: Source::Apt("python3") },
];

pub(crate) const BENCH: &[Need] =
    &[Need { program: "rg", why: "is what searching is measured against", source: Source::Apt("ripgrep") }];

pub(crate) const LINT: &[Need] = &[
    Need { program: "rustfmt", why: "formats", source: Source::Rustup("rustfmt") },
    Need { program: "cargo-clippy", why: "lints", source: Source::Rustup("clippy") },
    Need {
        program: "cargo-deny",
        why: "checks licences and sources",
        source: Source::Cargo(&["cargo-deny"]),
    },
];

/// Installs what is missing, and says what to do about the rest.
pub(crate) fn meet(needs: &[Need]) -> Outcome {
    let missing: Vec<&Need> = needs.iter().filter(|need| find(need.program).is_none()).collect();
    let failures: Vec<String> = missing.into_iter().filter_map(|need| install(need).err()).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Whether an optional program is there.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let cargo_bin = cargo_home.map(|home| home.join("bin"));
    std::env::split_paths(&path).chain(cargo_bin).map(|dir| dir.join(program)).find(|file| file.is_file())
}

fn install(need: &Need) -> Outcome {
    let (client, args): (&str, Vec<&str>) = match &need.source {
        Source::Cargo(args) => ("cargo", [&["install", "--locked"], *args].concat()),
        Source::Apt(packages) => {
            let fixed = ["install", "--yes", "--no-install-recommends"];
            ("apt-get", fixed.into_iter().chain(packages.split(' ')).collect())
        }
        Source::Rustup(component) => ("rustup", vec!["component", "add", component]),
    };
    let by_hand = format!("{client} {}", args.join(" "));
    let Need { program, why, .. } = need;
    let done = stage::timed(&format!("{program} is missing ({why}): {by_hand}"), || {
        if client == "apt-get" {
            // A list of packages that is old, or none at all, names files that are gone; the installation says the rest.
            let _ = Command::new(client).arg("update").stdin(Stdio::null()).status();
        }
        Command::new(client).args(&args).stdin(Stdio::null()).status()
    });
    match done {
        Ok(status) if status.success() && find(program).is_some() => Ok(()),
        Ok(status) => {
            Err(format!("{program} {why}; `{by_hand}` ended with {status}. Install it and try again."))
        }
        Err(error) => Err(format!("{program} {why}; `{by_hand}`: {error}. Install it and try again.")),
    }
}
