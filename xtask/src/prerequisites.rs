//! Programs that the commands need, why, and how to install them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Outcome, step, target_dir};

/// A program that must be on the PATH.
pub(crate) struct Need {
    program: &'static str,
    why: &'static str,
    source: Source,
}

enum Source {
    /// `cargo install --locked` with these arguments.
    Cargo(&'static [&'static str]),
    /// Packages of the distribution, separated by spaces, installed with apt-get if permitted.
    Apt(&'static str),
    /// Component of the Rust toolchain.
    Rustup(&'static str),
}

/// The test runner; it runs each test in its own process.
const NEXTEST: Need = Need {
    program: "cargo-nextest",
    why: "run the tests",
    // Without self-update, which would pull in a TLS stack and a downloader.
    source: Source::Cargo(&["cargo-nextest", "--no-default-features", "--features", "default-no-update"]),
};

pub(crate) const TEST: &[Need] = &[
    NEXTEST,
    Need { program: "git", why: "create the test projects", source: Source::Apt("git") },
    Need {
        program: "cc",
        why: "build SQLite and the library that kills at a journal write",
        source: Source::Apt("gcc"),
    },
    Need { program: "tmux", why: "provide a terminal for the chat tests", source: Source::Apt("tmux") },
    Need { program: "python3", why: "run the demo project's tests", source: Source::Apt("python3") },
    Need { program: "ip", why: "give addresses to a network of the tests", source: Source::Apt("iproute2") },
    Need { program: "curl", why: "reach hosts through the proxy", source: Source::Apt("curl") },
    Need { program: "openssl", why: "make the certificate of a host", source: Source::Apt("openssl") },
    Need {
        program: "Xvfb",
        why: "provide a display for the computer use tests",
        source: Source::Apt("xvfb"),
    },
    Need { program: "xmllint", why: "cross-check template validation", source: Source::Apt("libxml2-utils") },
    Need { program: "go", why: "test the Go toolchain in the sandbox", source: Source::Apt("golang-go") },
    Need { program: "npm", why: "install real MCP servers", source: Source::Apt("npm") },
];

pub(crate) const ATTACK: &[Need] = &[
    Need { program: "git", why: "create projects", source: Source::Apt("git") },
    Need {
        program: "cc",
        why: "build the library that kills at a journal write",
        source: Source::Apt("gcc"),
    },
    Need { program: "bash", why: "compare shells", source: Source::Apt("bash") },
    Need { program: "busybox", why: "compare shells", source: Source::Apt("busybox") },
];

/// What builds the page of `fusee serve`.
pub(crate) const PAGE: &[Need] = &[
    Need { program: "npm", why: "install what the web page is made of", source: Source::Apt("npm") },
    Need { program: "node", why: "build the web page", source: Source::Apt("nodejs") },
];

pub(crate) const BROWSER: &[Need] = &[
    Need { program: "npm", why: "install the browser's driver", source: Source::Apt("npm") },
    Need { program: "node", why: "run the tests of the web page", source: Source::Apt("nodejs") },
    Need { program: "chromium", why: "show the web page", source: Source::Apt("chromium") },
    Need { program: "python3", why: "run schemathesis", source: Source::Apt("python3 python3-venv") },
    Need { program: "script", why: "provide a terminal", source: Source::Apt("bsdutils") },
];

pub(crate) const LOCAL: &[Need] = &[
    NEXTEST,
    Need { program: "cmake", why: "build llama.cpp", source: Source::Apt("cmake") },
    Need { program: "c++", why: "compile llama.cpp", source: Source::Apt("g++") },
    Need { program: "clang", why: "parse llama.cpp's headers", source: Source::Apt("clang libclang-dev") },
    Need { program: "python3", why: "install the model", source: Source::Apt("python3") },
];

pub(crate) const BENCH: &[Need] =
    &[Need { program: "rg", why: "compare search times", source: Source::Apt("ripgrep") }];

pub(crate) const LINT: &[Need] = &[
    Need { program: "rustfmt", why: "check formatting", source: Source::Rustup("rustfmt") },
    Need { program: "cargo-clippy", why: "lint", source: Source::Rustup("clippy") },
    Need { program: "cargo-deny", why: "check licences and sources", source: Source::Cargo(&["cargo-deny"]) },
    Need {
        program: "cargo-machete",
        why: "find unused dependencies",
        source: Source::Cargo(&["cargo-machete"]),
    },
    Need { program: "c++", why: "build libFuzzer for the fuzz targets", source: Source::Apt("g++") },
];

/// Cargo settings for the tools themselves: they run for seconds, and their own release settings compile for minutes.
const QUICK_BUILD: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
];

/// Installs missing programs; the error says how to install those that failed.
pub(crate) fn ensure(needs: &[Need]) -> Outcome {
    let missing: Vec<&Need> = needs.iter().filter(|need| find(need.program).is_none()).collect();
    let failures: Vec<String> = missing.into_iter().filter_map(|need| install(need).err()).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Path of a program that only the repository uses, installed into `target/tools` with these arguments of
/// `cargo install` if it is not there.
pub(crate) fn own_tool(program: &str, args: &[&str]) -> Result<PathBuf, String> {
    let tools = target_dir().join("tools");
    let path = tools.join("bin").join(program);
    if !path.is_file() {
        let place = ["--root".into(), tools.clone(), "--target-dir".into(), tools.join("target")];
        let fixed = ["install", "--locked"].into_iter().chain(args.iter().copied()).map(PathBuf::from);
        step::run(&format!("install {program}"), step::cargo(), fixed.chain(place))?;
    }
    Ok(path)
}

/// Runs `install` unless the folder holds a record of exactly this list of packages, and writes the record afterwards.
pub(crate) fn install_once(folder: &Path, wanted: &str, install: impl FnOnce() -> Outcome) -> Outcome {
    let record = folder.join("installed");
    if std::fs::read_to_string(&record).is_ok_and(|known| known == wanted) {
        return Ok(());
    }
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    install()?;
    std::fs::write(&record, wanted).map_err(failed)
}

/// Installs npm packages into a folder, without running their scripts.
pub(crate) fn npm(folder: &Path, packages: &[&str]) -> Outcome {
    let place = folder.display().to_string();
    // `--force`: a package for a newer Node than the system's comes with that Node.
    let fixed = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--force", "--prefix", &place];
    step::run("packages from npm", "npm", fixed.iter().chain(packages))
}

/// Oldest Node that builds the page and runs its tests.
const NODE: (u32, u32) = (20, 19);

/// PATH on which `node` is recent enough: that of the system, or one with a Node from npm before it. Debian 12 has an older
/// one.
pub(crate) fn node_path() -> Result<OsString, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let version = Command::new("node").arg("--version").output().map_err(|error| format!("node: {error}"))?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let mut parts =
        version.trim().trim_start_matches('v').split('.').map_while(|part| part.parse::<u32>().ok());
    if (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) >= NODE {
        return Ok(path);
    }
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let (folder, package) = (target_dir().join("node"), format!("node-linux-{machine}"));
    let wanted = format!("{package}@22.23.3");
    install_once(&folder, &wanted, || npm(&folder, &[&wanted]))?;
    let own = folder.join("node_modules").join(package).join("bin");
    let all = std::iter::once(own).chain(std::env::split_paths(&path));
    std::env::join_paths(all).map_err(|error| format!("PATH: {error}"))
}

/// Makes a virtual environment of this Python and installs packages into it.
pub(crate) fn pip(python: &Path, environment: &Path, packages: &[&str]) -> Outcome {
    step::run("virtual environment", python, [Path::new("-m"), Path::new("venv"), environment])?;
    step::run(
        "packages from PyPI",
        environment.join("bin/pip"),
        ["install", "--quiet"].iter().chain(packages),
    )
}

/// Finds a program on the PATH or in cargo's bin directory.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let cargo_bin = cargo_home().join("bin");
    std::env::split_paths(&path).chain([cargo_bin]).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// Cargo's home directory.
pub(crate) fn cargo_home() -> PathBuf {
    let given = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    given.unwrap_or_else(|| std::env::home_dir().unwrap_or_default().join(".cargo"))
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
    let done = step::timed(&format!("{program} is missing, needed to {why}: {by_hand}"), || {
        if client == "apt-get" {
            // A stale or missing package list names files that no longer exist; errors surface in the
            // installation.
            let _ = Command::new(client).arg("update").stdin(Stdio::null()).status();
        }
        Command::new(client).args(&args).envs(QUICK_BUILD).stdin(Stdio::null()).status()
    });
    match done {
        Ok(status) if status.success() && find(program).is_some() => Ok(()),
        Ok(status) => Err(format!(
            "{program} is needed to {why}; `{by_hand}` ended with {status}; install it and retry"
        )),
        Err(error) => {
            Err(format!("{program} is needed to {why}; `{by_hand}`: {error}; install it and retry"))
        }
    }
}
