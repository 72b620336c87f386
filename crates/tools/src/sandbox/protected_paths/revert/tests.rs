//! Tests of which created files are set aside and which may stay.

use std::fs;

use super::*;

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Names of the files that were reverted; nothing may fail.
fn reverted(report: &ProtectionReport) -> Vec<String> {
    assert_eq!(report.unrestored, []);
    report.reverted.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

fn revert(path: &Path, on_create: CreatedPathAction) -> Vec<String> {
    let mut report = ProtectionReport::default();
    revert_at(path, on_create, &mut report);
    reverted(&report)
}

fn undo(watch: &Watch<'_>) -> Vec<String> {
    let mut report = ProtectionReport::default();
    watch.undo(&mut report);
    reverted(&report)
}

#[test]
fn what_was_made_is_set_aside_and_not_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("fusee.toml");
    let watch = Watch::over(vec![(&path, CreatedPathAction::SetAside)]);
    assert!(undo(&watch).is_empty());
    for content in ["one", "two"] {
        fs::write(&path, content).unwrap();
        assert_eq!(undo(&watch).len(), 1);
    }
    assert_eq!(names(directory.path()), ["fusee.toml.refused", "fusee.toml.refused2"]);
    assert_eq!(fs::read_to_string(directory.path().join("fusee.toml.refused")).unwrap(), "one");
}

#[test]
fn a_link_is_set_aside_and_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("target");
    fs::create_dir(&target).unwrap();
    let path = directory.path().join(".fusee");
    std::os::unix::fs::symlink(&target, &path).unwrap();
    assert!(!revert(&path, CreatedPathAction::SetAside).is_empty());
    assert_eq!(names(directory.path()), [".fusee.refused", "target"]);
}

#[test]
fn samples_of_hooks_stay_and_hooks_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let hooks = directory.path().join("hooks");
    fs::create_dir(&hooks).unwrap();
    fs::write(hooks.join("pre-commit.sample"), "").unwrap();
    assert!(revert(&hooks, CreatedPathAction::WithoutHooks).is_empty());
    fs::write(hooks.join("pre-commit"), "evil").unwrap();
    std::os::unix::fs::symlink("pre-commit.sample", hooks.join("post-checkout")).unwrap();
    assert!(!revert(&hooks, CreatedPathAction::WithoutHooks).is_empty());
    assert_eq!(names(&hooks), ["post-checkout.refused", "pre-commit.refused", "pre-commit.sample"]);
    assert!(revert(&hooks, CreatedPathAction::WithoutHooks).is_empty());
}

#[test]
fn settings_that_are_not_tame_are_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("config");
    fs::write(&path, "[core]\n\tfsmonitor = evil\n").unwrap();
    assert!(!revert(&path, CreatedPathAction::Sanitized).is_empty());
    assert_eq!(fs::read_to_string(&path).unwrap(), PLAIN_SETTINGS);
    assert!(revert(&path, CreatedPathAction::Sanitized).is_empty());
    assert_eq!(names(directory.path()), ["config", "config.refused"]);
}

#[test]
fn only_a_directory_may_be_a_repository() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join(".git");
    fs::create_dir(&path).unwrap();
    assert!(revert(&path, CreatedPathAction::UnlessDirectory).is_empty());
    fs::remove_dir(&path).unwrap();
    fs::write(&path, "gitdir: bad").unwrap();
    assert!(!revert(&path, CreatedPathAction::UnlessDirectory).is_empty());
    assert_eq!(names(directory.path()), [".git.refused"]);
}

#[test]
fn the_system_tells_when_something_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let (repository, hooks) = (directory.path().join(".git"), directory.path().join(".git/hooks"));
    let watch = Watch::over(vec![
        (&repository, CreatedPathAction::UnlessDirectory),
        (&hooks, CreatedPathAction::WithoutHooks),
    ]);
    let output = || {
        let mut events =
            [rustix::event::PollFd::new(watch.readable_fd().unwrap(), rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut events, Some(&rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 })).unwrap()
            == 1
    };
    fs::create_dir_all(&hooks).unwrap();
    assert!(output());
    assert!(undo(&watch).is_empty());
    fs::write(hooks.join("pre-commit"), "evil").unwrap();
    assert!(output());
    assert_eq!(undo(&watch).len(), 1);
    assert_eq!(names(&hooks), ["pre-commit.refused"]);
}

#[test]
fn settings_are_looked_at_when_they_change_and_files_next_to_others_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let (config, ours) = (directory.path().join(".git/config"), directory.path().join("fusee.toml"));
    fs::create_dir(directory.path().join(".git")).unwrap();
    fs::write(directory.path().join("log"), "one\n").unwrap();
    let watch =
        Watch::over(vec![(&config, CreatedPathAction::Sanitized), (&ours, CreatedPathAction::SetAside)]);
    let output = || {
        let mut events =
            [rustix::event::PollFd::new(watch.readable_fd().unwrap(), rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut events, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap()
            == 1
    };
    fs::write(directory.path().join("log"), "two\n").unwrap();
    assert!(!output());
    fs::write(&config, PLAIN_SETTINGS).unwrap();
    assert!(output());
    assert!(undo(&watch).is_empty());
    let mut open = fs::OpenOptions::new().append(true).open(&config).unwrap();
    std::io::Write::write_all(&mut open, b"\tfsmonitor = evil\n").unwrap();
    assert!(output());
    assert_eq!(undo(&watch).len(), 1);
    assert_eq!(fs::read_to_string(&config).unwrap(), PLAIN_SETTINGS);
}

#[test]
fn modes_do_not_keep_anything_from_being_reverted() {
    use std::os::unix::fs::PermissionsExt;
    let chmod = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o555, 0o400, 0o300, 0] {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let git = base.join("n/.git");
        fs::create_dir_all(git.join("hooks")).unwrap();
        fs::write(git.join("config"), "[core]\n\tfsmonitor = evil\n").unwrap();
        fs::write(git.join("commondir"), "elsewhere").unwrap();
        fs::write(git.join("hooks/pre-commit"), "evil").unwrap();
        for path in [git.join("config"), git.join("hooks"), git.clone(), base.join("n")] {
            chmod(&path, mode);
        }
        for (path, on_create) in crate::sandbox::policy::of_a_repository(&git) {
            revert(&path, on_create);
        }
        for path in [base.join("n"), git.clone(), git.join("hooks")] {
            chmod(&path, 0o755);
        }
        assert_eq!(names(&git), ["commondir.refused", "config", "config.refused", "hooks"], "{mode:o}");
        assert_eq!(names(&git.join("hooks")), ["pre-commit.refused"], "{mode:o}");
        assert_eq!(fs::read_to_string(git.join("config")).unwrap(), PLAIN_SETTINGS, "{mode:o}");
    }
}

#[test]
fn taken_names_do_not_keep_anything_from_being_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("fusee.toml");
    fs::write(directory.path().join("fusee.toml.refused"), "").unwrap();
    for number in 2..200 {
        fs::create_dir(directory.path().join(format!("fusee.toml.refused{number}"))).unwrap();
    }
    fs::write(&path, "evil").unwrap();
    assert_eq!(revert(&path, CreatedPathAction::SetAside), ["fusee.toml"]);
    assert!(!path.exists());
    let aside = |name: &String| name.starts_with("fusee.toml.refused-");
    assert_eq!(names(directory.path()).iter().filter(|name| aside(name)).count(), 1);
}

#[test]
fn what_cannot_be_reverted_is_reported() {
    let mut report = ProtectionReport::default();
    // Nothing can be renamed there, whoever this process is.
    revert_at(Path::new("/proc/version"), CreatedPathAction::SetAside, &mut report);
    assert_eq!(report.reverted, [] as [std::path::PathBuf; 0]);
    assert_eq!(report.unrestored.len(), 1);
    assert_eq!(report.unrestored[0].0, Path::new("/proc/version"));
}
