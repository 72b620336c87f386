//! The tools that benchmarks are tested with: Harbor, scipy and statsmodels from PyPI in a virtual environment, and
//! playwright-core from npm for the report; installed once into the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, prerequisites, step, target_dir};

/// Environment variable that tells the tests where the tools are.
const VARIABLE: &str = "FUSEE_BENCH_TOOLS";

/// Harbor itself is installed without its dependencies after an older version with them: its newest version may ask for
/// a newer certifi than a mirror has.
const PYTHON: [&str; 5] = ["harbor", "scipy", "statsmodels", "numpy", "agent-client-protocol"];
const HARBOR: &str = "harbor==0.25.0";
const BROWSER: &str = "playwright-core@1.65.1";

fn folder() -> PathBuf {
    target_dir().join("bench-tools")
}

/// Installs the tools unless these versions are installed.
pub(crate) fn install() -> Outcome {
    let folder = folder();
    let wanted = format!("{} {HARBOR} {BROWSER}", PYTHON.join(" "));
    prerequisites::install_once(&folder, &wanted, || {
        let venv = folder.join("venv");
        prerequisites::pip(&python()?, &venv, &PYTHON)?;
        step::run("Harbor", venv.join("bin/pip"), ["install", "--quiet", "--no-deps", HARBOR])?;
        prerequisites::npm(&folder, &[BROWSER])
    })
}

/// Finds Python 3.12, which Harbor needs: by its name, or among the versions of pyenv or uv.
fn python() -> Result<PathBuf, String> {
    let works = |path: &Path| {
        let output = Command::new(path).arg("--version").output();
        output.is_ok_and(|output| output.status.success() && output.stdout.starts_with(b"Python 3.12"))
    };
    let lines = |program: &str, args: &[&str]| -> Vec<String> {
        let output = Command::new(program).args(args).output();
        let text =
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        text.lines().map(|line| line.trim().to_owned()).collect()
    };
    let mut candidates = vec![PathBuf::from("python3.12"), PathBuf::from("python3")];
    let pyenv = lines("pyenv", &["root"]).into_iter().next().unwrap_or_default();
    for version in
        lines("pyenv", &["versions", "--bare"]).iter().filter(|version| version.starts_with("3.12"))
    {
        candidates.push(Path::new(&pyenv).join("versions").join(version).join("bin/python3.12"));
    }
    candidates.extend(lines("uv", &["python", "find", "3.12"]).into_iter().map(PathBuf::from));
    let found = candidates.into_iter().find(|path| works(path));
    found.ok_or_else(|| {
        "Python 3.12 not found; the tests with Harbor need it (python3.12, pyenv or uv)".to_owned()
    })
}

/// Runs the tests that need the tools; they are ignored by a plain `cargo nextest run`.
pub(crate) fn test() -> Outcome {
    let name = "benchmarks with Harbor, scipy and a browser";
    step::ignored_tests(name, &["bench_tools", "reference"], (VARIABLE, folder()))
}
