//! `cargo xtask dist`: packages for Linux, as a tarball and a `.deb`, from the same files and reproducibly.
//!
//! The same commit, toolchain and machine give the same bytes: paths are mapped, times come from the commit, and files
//! are sorted. `--check` builds everything twice, in two directories, and compares.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, prerequisites, root, step, target_dir};

/// Not optimised: it packs a few files.
const CARGO_DEB: &[&str] = &["cargo-deb", "--version", "3.8.0", "--debug", "--no-default-features"];

/// Features of released binaries beyond the default ones.
const RELEASE_FEATURES: &[&str] = &["--features", "restate"];

/// Files that are packed beside the binary.
const TEXTS: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"];

/// Builds the packages into `target/dist`.
pub(crate) fn run(args: &[String]) -> Outcome {
    let check = match args {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err("usage: cargo xtask dist [--check]".to_owned()),
    };
    let dist = target_dir().join("dist");
    let first = Build::new(dist.join("build"))?.packages(&dist)?;
    if check {
        let again = dist.join("again");
        let second = Build::new(again.join("build"))?.packages(&again)?;
        if first.sums != second.sums {
            return Err(format!("two builds differ:\n{}\n{}", first.sums, second.sums));
        }
        println!("two builds, the same bytes");
    }
    print!("{}", first.sums);
    println!("the binary needs glibc {} or newer", first.glibc);
    Ok(())
}

/// A build in a target directory of its own, because of its flags.
struct Build {
    target_dir: PathBuf,
    commit: String,
    /// Time of the commit, in seconds since the Unix epoch.
    epoch: String,
    target: String,
}

/// What was built.
struct Packages {
    sums: String,
    glibc: String,
}

impl Build {
    fn new(target_dir: PathBuf) -> Result<Self, String> {
        let versions = output("rustc", &["-vV"])?;
        let host = versions.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        Ok(Self {
            target_dir,
            commit: output("git", &["rev-parse", "--short=12", "HEAD"])?,
            epoch: output("git", &["log", "-1", "--format=%ct"])?,
            target: host.to_owned(),
        })
    }

    /// Builds, packs into `dist`, and writes the checksums.
    fn packages(&self, dist: &Path) -> Result<Packages, String> {
        let tool = prerequisites::own_tool("cargo-deb", CARGO_DEB)?;
        // The documented way to install, so that it is tested with every package.
        let place = self.target_dir.join("installed").display().to_string();
        let args = ["install", "--path", "crates/cli", "--locked", "--force", "--no-track", "--root", &place];
        let args = [&args[..], RELEASE_FEATURES].concat();
        self.run("cargo install", step::cargo().as_ref(), &args, &root())?;
        let binary = self.target_dir.join("installed/bin/fusee");
        let name = format!("fusee-{}-{}", env!("CARGO_PKG_VERSION"), self.target);
        // One place for both builds of a check, wherever the target directory is: the manifest names it for cargo-deb.
        let stage = root().join("target/dist/stage");
        let _ = fs::remove_dir_all(&stage);
        self.fill(&stage, &binary)?;
        let tarball = format!("{name}.tar.gz");
        let pack = format!(
            "tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
             --mtime=@{} --transform='s,^\\.,{name},' -C '{}' -cf - . | gzip -n9 > '{}'",
            self.epoch,
            stage.display(),
            dist.join(&tarball).display(),
        );
        self.run("tarball", "sh".as_ref(), &["-c", &pack], &root())?;
        let deb =
            format!("fusee_{}_{}.deb", env!("CARGO_PKG_VERSION"), output("dpkg", &["--print-architecture"])?);
        let place = dist.join(&deb).display().to_string();
        let args = ["--package", "fusee-cli", "--quiet", "--no-build", "--no-strip", "--output", &place];
        self.run("deb", tool.as_os_str(), &args, &root())?;
        let sums = self.output_in(dist, "sha256sum", &[&deb, &tarball])?;
        write(&dist.join("SHA256SUMS"), &sums)?;
        Ok(Packages { sums, glibc: newest_glibc(&binary)? })
    }

    /// Everything that is packed, in the layout of the tarball.
    fn fill(&self, stage: &Path, binary: &Path) -> Outcome {
        let failed = |error: std::io::Error| format!("cannot fill {}: {error}", stage.display());
        for folder in ["man/man1", "completions"] {
            fs::create_dir_all(stage.join(folder)).map_err(failed)?;
        }
        fs::copy(binary, stage.join("fusee")).map_err(failed)?;
        for text in TEXTS {
            fs::copy(root().join(text), stage.join(text)).map_err(failed)?;
        }
        let man = stage.join("man/man1").display().to_string();
        self.run("man pages", binary.as_os_str(), &["docs", "--man", &man], &root())?;
        for (shell, file) in [("bash", "fusee.bash"), ("zsh", "_fusee"), ("fish", "fusee.fish")] {
            let script = self.output_in(stage, &binary.display().to_string(), &["completions", shell])?;
            write(&stage.join("completions").join(file), &script)?;
        }
        write(&stage.join("THIRD-PARTY-LICENSES"), &third_party_licenses()?)
    }

    fn run(&self, name: &str, program: &std::ffi::OsStr, args: &[&str], folder: &Path) -> Outcome {
        step::timed(name, || {
            let mut command = Command::new(program);
            let status = self.prepare(command.args(args).current_dir(folder)).status();
            let status = status.map_err(|error| format!("{}: {error}", program.display()))?;
            if status.success() { Ok(()) } else { Err(format!("{name} failed ({status})")) }
        })
    }

    fn output_in(&self, folder: &Path, program: &str, args: &[&str]) -> Result<String, String> {
        let mut command = Command::new(program);
        text_of(program, self.prepare(command.args(args).current_dir(folder)))
    }

    /// Sets what makes a build independent of where and when it runs.
    fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        // The last one that fits counts.
        let places = [
            (root(), "/fusee"),
            (self.target_dir.clone(), "/target"),
            (prerequisites::cargo_home(), "/cargo"),
        ];
        let map = |flag: &str| {
            let mut flags = OsString::new();
            for (from, to) in &places {
                flags.push(format!("{flag}={}={to} ", from.display()));
            }
            flags
        };
        command
            .env("CARGO_TARGET_DIR", &self.target_dir)
            .env("RUSTFLAGS", map("--remap-path-prefix"))
            .env("CFLAGS", map("-ffile-prefix-map"))
            .env("CARGO_INCREMENTAL", "0")
            .env("FUSEE_COMMIT", &self.commit)
            .env("SOURCE_DATE_EPOCH", &self.epoch)
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
    }
}

/// The newest version of glibc that a symbol of the binary comes from.
fn newest_glibc(binary: &Path) -> Result<String, String> {
    let symbols = output("objdump", &["-T", &binary.display().to_string()])?;
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let version: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let numbers: Option<Vec<u32>> = version.split('.').map(|part| part.parse().ok()).collect();
        numbers.map(|numbers| (numbers, version))
    });
    versions.max().map(|(_, version)| version).ok_or_else(|| "no version of glibc in the binary".to_owned())
}

/// The licence of every crate in the binary, with its text.
fn third_party_licenses() -> Result<String, String> {
    let args =
        ["tree", "-p", "fusee-cli", "-e", "normal", "--prefix", "none", "--format", "{p}|{l}", "--locked"];
    let tree = output(&step::cargo(), &[&args[..], RELEASE_FEATURES].concat())?;
    let crates: BTreeSet<&str> =
        tree.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| !line.contains(" (/")).collect();
    let registry = prerequisites::cargo_home().join("registry/src");
    let sources: Vec<PathBuf> = fs::read_dir(&registry)
        .map_err(|error| format!("cannot read {}: {error}", registry.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    let mut text = String::from("The binary contains these crates.\n");
    for line in crates {
        let Some((package, license)) = line.split_once('|') else { continue };
        let mut words = package.split(' ');
        let (name, version) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        text.push_str(&format!("\n==== {package}: {license}\n"));
        let folder = format!("{name}-{}", version.trim_start_matches('v'));
        for source in &sources {
            text.push_str(&license_texts(&source.join(&folder)));
        }
    }
    Ok(text)
}

/// Texts of the licence files of a crate.
fn license_texts(folder: &Path) -> String {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let is_license = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"].iter().any(|start| name.starts_with(start))
    };
    let files: BTreeSet<PathBuf> = entries.filter(is_license).collect();
    files.iter().filter_map(|file| fs::read_to_string(file).ok()).map(|text| format!("\n{text}\n")).collect()
}

fn output(program: &str, args: &[&str]) -> Result<String, String> {
    let text = text_of(program, Command::new(program).args(args).current_dir(root()))?;
    Ok(text.trim().to_owned())
}

fn text_of(program: &str, command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{program}: {error}"))
}

fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
