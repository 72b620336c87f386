//! Embeds what the binary says about itself: the pages of the manual, compressed, and the commit it was built from.
//!
//! The manual is `docs/` and `spec/` of this package, links to the folders of the repository; a package contains the
//! files themselves. `src/command/manual.rs` reads the archive.
#![expect(clippy::disallowed_methods, reason = "a build script reads the environment and asks git")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let mut archive = Vec::new();
    for folder in ["docs", "spec"] {
        println!("cargo::rerun-if-changed={folder}");
        for page in pages(Path::new(folder))? {
            let text = fs::read(&page)?;
            archive.extend_from_slice(format!("{} {}\n", page.display(), text.len()).as_bytes());
            archive.extend_from_slice(&text);
        }
    }
    fs::write(out.join("manual.bin"), miniz_oxide::deflate::compress_to_vec(&archive, 9))?;
    println!("cargo::rustc-env=FUSEE_TARGET={}", std::env::var("TARGET")?);
    if let Some(commit) = commit() {
        println!("cargo::rustc-env=FUSEE_COMMIT={commit}");
    }
    Ok(())
}

/// Markdown files below a folder, sorted by path.
fn pages(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(pages(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// `FUSEE_COMMIT` if it is set, else git's HEAD, in optimised builds only: other builds would be repeated after
/// every commit.
fn commit() -> Option<String> {
    println!("cargo::rerun-if-env-changed=FUSEE_COMMIT");
    if let Ok(commit) = std::env::var("FUSEE_COMMIT") {
        return Some(commit);
    }
    if std::env::var("PROFILE").as_deref() != Ok("release") {
        return None;
    }
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
