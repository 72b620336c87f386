//! `cargo xtask web`: builds the page of `fusee serve` into `crates/serve/page/dist`, which is committed so that building the
//! crate needs no node. With `--check`, fails if the committed result is not what the sources give. `test` runs the page in a
//! real Chromium, and the API against schemathesis.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, prerequisites, root, step, target_dir};

/// Files of the build.
const BUILT: [&str; 2] = ["index.html.gz", "policy.txt"];

/// Maximum size of the compressed page in bytes.
const MAX_BYTES: usize = 150_000;

/// Files of the tests in a browser and of schemathesis.
const TESTS: [&str; 6] = [
    "browser.test.mjs",
    "actions.test.mjs",
    "pages.test.mjs",
    "large.test.mjs",
    "looks.test.mjs",
    "schemathesis.test.mjs",
];

/// What the tests need from npm.
const PACKAGES: [&str; 2] = ["playwright-core@1.65.1", "axe-core@4.14.0"];

/// What the tests need from PyPI.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// Builds the page, or checks the committed build.
pub(crate) fn run(args: &[String]) -> Outcome {
    let check = match args {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err("Usage: cargo xtask web [--check]".to_owned()),
    };
    let page = root().join("crates/serve/page");
    let dist = page.join("dist");
    let before = BUILT.map(|file| std::fs::read(dist.join(file)).ok());
    prerequisites::ensure(prerequisites::PAGE)?;
    npm(&page, &["ci", "--no-audit", "--no-fund", "--ignore-scripts"])?;
    npm(&page, &["run", "build"])?;
    let after = BUILT.map(|file| std::fs::read(dist.join(file)).ok());
    let size = after[0].as_ref().map_or(0, Vec::len);
    println!("the page has {size} bytes, compressed; at most {MAX_BYTES} are allowed");
    if size > MAX_BYTES {
        return Err("the page is too large".to_owned());
    }
    match check && before != after {
        true => Err("crates/serve/page/dist is not current: run `cargo xtask web` and commit it".to_owned()),
        false => Ok(()),
    }
}

fn npm(page: &Path, args: &[&str]) -> Outcome {
    let path = prerequisites::node_path()?;
    step::timed(&format!("npm {}", args[0]), || {
        let status = Command::new("npm").args(args).current_dir(page).env("PATH", path).status();
        match status.map_err(|error| format!("npm: {error}"))? {
            status if status.success() => Ok(()),
            status => Err(format!("npm {} failed ({status})", args.join(" "))),
        }
    })
}

fn folder() -> PathBuf {
    target_dir().join("browser")
}

/// Installs what the tests need, unless it is there. Chromium itself comes from the system.
pub(crate) fn install() -> Outcome {
    prerequisites::ensure(prerequisites::BROWSER)?;
    let folder = folder();
    prerequisites::install_once(&folder, &[PACKAGES.join("\n"), SCHEMATHESIS.to_owned()].join("\n"), || {
        prerequisites::npm(&folder, &PACKAGES)?;
        prerequisites::pip("python3".as_ref(), &folder.join("python"), &[SCHEMATHESIS])
    })
}

/// Runs the tests in a browser and schemathesis. Lint checks that the page they see is what the sources give.
pub(crate) fn test() -> Outcome {
    let fusee = step::binary("fusee")?;
    let path = prerequisites::node_path()?;
    step::timed("tests in Chromium", || {
        let status = Command::new("node")
            .args(["--test", "--test-concurrency=2"])
            .args(TESTS.map(|file| root().join("crates/serve/page/test").join(file)))
            .env("PATH", &path)
            .env("FUSEE", fusee)
            .env("BROWSER_MODULES", folder())
            .env("SCHEMATHESIS", folder().join("python/bin/schemathesis"))
            .current_dir(root())
            .status()
            .map_err(|error| format!("node: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("tests in Chromium failed ({status})")) }
    })
}
