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

#[test]
fn the_settings_of_a_new_repository_are_tame() {
    assert!(has_only_safe_settings(PLAIN_SETTINGS.as_bytes()));
    assert!(has_only_safe_settings(
        b"# new\n[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = A\n\temail = a@b\n"
    ));
}

#[test]
fn settings_that_run_something_are_not() {
    for text in [
        "[core]\n\tfsmonitor = evil\n",
        "[core]\n\tfsmonitor\n",
        "[core] fsmonitor = evil\n",
        "[core]\n\thooksPath = evil\n",
        "[CORE]\n\tsshCommand = evil\n",
        "[remote \"x\"]\n\tuploadpack = evil\n",
        "[alias]\n\tst = !evil\n",
        "[filter \"x\"]\n\tclean = evil\n",
        "[include]\n\tpath = evil\n",
        "[includeIf \"gitdir:.\"]\n\tpath = evil\n",
        "[extensions]\n\tworktreeConfig = true\n",
        "[user]\n\tname = x \\\n[core]\n\tfsmonitor = evil\n",
        "fsmonitor = evil\n",
        "[core]]\n\tbare = false\n",
        "[user]\r[core]\rfsmonitor = evil\n",
    ] {
        assert!(!has_only_safe_settings(text.as_bytes()), "{text}");
    }
}

#[test]
fn what_was_made_is_set_aside_and_not_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fusee.toml");
    let watch = Watch::over(vec![(&path, CreatedPathAction::SetAside)]);
    assert_eq!(watch.undo(), Undone::Nothing);
    for content in ["one", "two"] {
        fs::write(&path, content).unwrap();
        assert_eq!(watch.undo(), Undone::Something);
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
    assert_eq!(revert_at(&path, CreatedPathAction::SetAside), Undone::Something);
    assert_eq!(names(directory.path()), [".fusee.refused", "target"]);
}

#[test]
fn samples_of_hooks_stay_and_hooks_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let hooks = directory.path().join("hooks");
    fs::create_dir(&hooks).unwrap();
    fs::write(hooks.join("pre-commit.sample"), "").unwrap();
    assert_eq!(revert_at(&hooks, CreatedPathAction::WithoutHooks), Undone::Nothing);
    fs::write(hooks.join("pre-commit"), "evil").unwrap();
    std::os::unix::fs::symlink("pre-commit.sample", hooks.join("post-checkout")).unwrap();
    assert_eq!(revert_at(&hooks, CreatedPathAction::WithoutHooks), Undone::Something);
    assert_eq!(names(&hooks), ["post-checkout.refused", "pre-commit.refused", "pre-commit.sample"]);
    assert_eq!(revert_at(&hooks, CreatedPathAction::WithoutHooks), Undone::Nothing);
}

#[test]
fn settings_that_are_not_tame_are_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    fs::write(&path, "[core]\n\tfsmonitor = evil\n").unwrap();
    assert_eq!(revert_at(&path, CreatedPathAction::Sanitized), Undone::Something);
    assert_eq!(fs::read_to_string(&path).unwrap(), PLAIN_SETTINGS);
    assert_eq!(revert_at(&path, CreatedPathAction::Sanitized), Undone::Nothing);
    assert_eq!(names(directory.path()), ["config", "config.refused"]);
}

#[test]
fn only_a_directory_may_be_a_repository() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".git");
    fs::create_dir(&path).unwrap();
    assert_eq!(revert_at(&path, CreatedPathAction::UnlessDirectory), Undone::Nothing);
    fs::remove_dir(&path).unwrap();
    fs::write(&path, "gitdir: bad").unwrap();
    assert_eq!(revert_at(&path, CreatedPathAction::UnlessDirectory), Undone::Something);
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
    let told = || {
        let mut events =
            [rustix::event::PollFd::new(watch.readable_fd().unwrap(), rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut events, Some(&rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 })).unwrap()
            == 1
    };
    fs::create_dir_all(&hooks).unwrap();
    assert!(told());
    assert_eq!(watch.undo(), Undone::Nothing);
    fs::write(hooks.join("pre-commit"), "evil").unwrap();
    assert!(told());
    assert_eq!(watch.undo(), Undone::Something);
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
    let told = || {
        let mut events =
            [rustix::event::PollFd::new(watch.readable_fd().unwrap(), rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut events, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap()
            == 1
    };
    fs::write(directory.path().join("log"), "two\n").unwrap();
    assert!(!told());
    fs::write(&config, PLAIN_SETTINGS).unwrap();
    assert!(told());
    assert_eq!(watch.undo(), Undone::Nothing);
    let mut open = fs::OpenOptions::new().append(true).open(&config).unwrap();
    std::io::Write::write_all(&mut open, b"\tfsmonitor = evil\n").unwrap();
    assert!(told());
    assert_eq!(watch.undo(), Undone::Something);
    assert_eq!(fs::read_to_string(&config).unwrap(), PLAIN_SETTINGS);
}
