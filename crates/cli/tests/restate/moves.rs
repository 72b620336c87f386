//! A run that moves from worker to worker takes its files along, byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fusee_testkit::project::{Project, Running};
use fusee_testkit::script::Line;
use rustix::process::Signal;
use serde_json::json;

use crate::engine::{Engine, fusee, worker_with};

/// Everything in a folder but Fusee's own files: mode, and hash of the content or of the target of a link, by path.
fn listing(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            let about = fs::symlink_metadata(&path).expect("a file");
            let content = match about.file_type() {
                kind if kind.is_symlink() => {
                    fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
                }
                kind if kind.is_dir() => {
                    open.push(path.clone());
                    Vec::new()
                }
                _ => fs::read(&path).expect("a file"),
            };
            let state = format!("{:o} {}", about.mode(), blake3::hash(&content));
            found.insert(path.strip_prefix(folder).expect("below it").to_owned(), state);
        }
    }
    found.retain(|path, _| !path.starts_with(".fusee"));
    found
}

/// Paths that differ.
fn differences(one: &BTreeMap<PathBuf, String>, other: &BTreeMap<PathBuf, String>) -> Vec<PathBuf> {
    let all: BTreeSet<&PathBuf> = one.keys().chain(other.keys()).collect();
    all.into_iter().filter(|path| one.get(*path) != other.get(*path)).cloned().collect()
}

fn holder(project: &Project, engine: &Engine, folder: &Path) -> Running {
    let folder = folder.display().to_string();
    worker_with(project, engine, &["--allow-unsandboxed", "--folder", &folder], &[])
}

fn wait_for(file: &Path) {
    let begun = Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < Duration::from_secs(120), "no {}", file.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[ignore = "needs the server that `cargo xtask suites restate` installs"]
fn a_workspace_is_the_same_on_every_worker() {
    let engine = Engine::start();
    let project = Project::new()
        .with("kept.txt", "kept\n")
        .with("gone.txt", "gone\n")
        .with("gone/deep/file.txt", "gone\n")
        .with("script.sh", "#!/bin/sh\n")
        .with(".gitignore", "ignored\n")
        .with("ignored/cache.bin", "cache\n");
    let git = "git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm first";
    let made = std::process::Command::new("sh").args(["-c", git]).current_dir(project.dir()).status();
    assert!(made.expect("git").success());
    fs::write(project.dir().join("untracked.bin"), [0, 159, 146, 150, 255, 10]).expect("written");
    fs::set_permissions(project.dir().join("script.sh"), fs::Permissions::from_mode(0o750)).expect("a mode");
    let changes = "rm -r gone gone.txt && chmod 600 kept.txt && ln -s kept.txt link && ln -s /nowhere/x broken && \
        mkdir -p 'new dir/empty' && chmod 700 'new dir' && head -c 300000 /dev/urandom > 'new dir/random' && \
        printf 'a\\0b' > zero && git add -A && printf changed >> script.sh";
    let [one, two] = [project.home().join("one"), project.home().join("two")];
    let (first_stop, second_stop) = (project.home().join("stop-1"), project.home().join("stop-2"));
    let hold = |file: &Path| json!({"command": format!("touch {}; sleep 60", file.display())});
    let model = project.script(&[
        Line::call("shell", json!({ "command": changes })),
        Line::call("shell", hold(&first_stop)),
        Line::call("shell", hold(&second_stop)),
        Line::text("Finished."),
    ]);
    let first = holder(&project, &engine, &one);
    let run = ["run", "--run-id", "w", "--sandbox", "off", "-m", &model, "do it"];
    let running = fusee(&project, &engine, &run).limit(Duration::from_secs(180)).start();
    wait_for(&first_stop);
    let there = listing(&one.join("w/files"));
    for path in
        ["new dir/random", "new dir/empty", "untracked.bin", "ignored/cache.bin", "broken", ".git/index"]
    {
        assert!(there.contains_key(Path::new(path)), "no {path}");
    }
    assert!(!there.keys().any(|path| path.starts_with("gone") || path == Path::new("gone.txt")));

    let _second = holder(&project, &engine, &two);
    first.signal(Signal::KILL);
    wait_for(&second_stop);
    let moved = differences(&listing(&two.join("w/files")), &there);
    assert!(moved.is_empty(), "differs on the second worker: {moved:?}");

    fusee(&project, &engine, &["cancel", "w"]).run().exits(0);
    running.wait().exits(130);
    fusee(&project, &engine, &["pull", "w"]).run().exits(0);
    let pulled = differences(&listing(&project.dir()), &there);
    assert!(pulled.is_empty(), "differs at the user: {pulled:?}");
}
