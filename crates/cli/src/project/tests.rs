//! Locating projects and their journals.

use super::*;

fn environment(home: &Path) -> Environment {
    Environment::from_variables(&[("HOME", home.to_str().unwrap())], home)
}

#[test]
fn the_nearest_ancestor_with_a_mark_is_the_root() {
    let place = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(place.path()).unwrap();
    fs::create_dir_all(top.join("a/.git")).unwrap();
    fs::create_dir_all(top.join("a/b/.fusee")).unwrap();
    fs::create_dir_all(top.join("a/b/c")).unwrap();
    fs::create_dir_all(top.join("a/d")).unwrap();
    let environment = environment(&top);
    let root =
        |directory: &str| Project::find(Some(Path::new(directory)), &environment).unwrap().root.unwrap();
    assert_eq!(root("a/b/c"), top.join("a/b"));
    assert_eq!(root("a/d"), top.join("a"));
}

#[test]
fn a_git_worktree_whose_mark_is_a_file_is_a_root() {
    let place = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(place.path()).unwrap();
    fs::write(top.join(".git"), "gitdir: elsewhere").unwrap();
    assert_eq!(Project::find(None, &environment(&top)).unwrap().root, Some(top));
}

#[test]
fn without_a_root_the_journal_is_in_the_state_folder_under_a_name_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let top = fs::canonicalize(place.path()).unwrap();
    fs::create_dir_all(top.join("one/my work!")).unwrap();
    fs::create_dir_all(top.join("two/my work!")).unwrap();
    let environment = environment(&top);
    let journal = |directory: &str| Project::find(Some(Path::new(directory)), &environment).unwrap().journal;
    let (one, two) = (journal("one/my work!"), journal("two/my work!"));
    assert_ne!(one, two);
    assert!(one.starts_with(top.join(".local/state/fusee/projects")), "{}", one.display());
    let folder = one.parent().unwrap().file_name().unwrap().to_str().unwrap();
    assert!(folder.starts_with("my-work--") && folder.len() == "my-work--".len() + 8, "{folder}");
}

#[test]
fn without_a_home_the_next_step_is_named() {
    let place = tempfile::tempdir().unwrap();
    let failure = Project::find(None, &Environment::from_variables(&[], place.path())).unwrap_err();
    assert!(failure.help.unwrap().contains("fusee init"));
}

#[test]
fn the_folder_keeps_itself_out_of_version_control_and_leaves_an_own_file_alone() {
    let place = tempfile::tempdir().unwrap();
    assert!(make_ignore_file(place.path()).unwrap());
    let text = fs::read_to_string(place.path().join(".gitignore")).unwrap();
    assert_eq!(
        text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>(),
        ["/.gitignore", "/journal.db*", "/memory.*", "/output/", "/aside/", "/undone/", "/locks/", "/logs/"]
    );
    fs::write(place.path().join(".gitignore"), "mine").unwrap();
    assert!(!make_ignore_file(place.path()).unwrap());
    assert_eq!(fs::read_to_string(place.path().join(".gitignore")).unwrap(), "mine");
}

#[test]
fn a_directory_that_is_not_there_is_wrong_usage() {
    let place = tempfile::tempdir().unwrap();
    let failure = Project::find(Some(Path::new("gone")), &environment(place.path())).unwrap_err();
    assert_eq!(failure.exit, fusee::engine::run::ExitStatus::Usage);
    assert!(failure.message.contains("gone"), "{}", failure.message);
}
