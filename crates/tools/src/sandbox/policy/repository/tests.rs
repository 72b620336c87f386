//! Genuine and forged pointers to repositories, and the filtered user settings.

use std::fs;

use super::*;

struct Trees {
    base: PathBuf,
    _directory: tempfile::TempDir,
}

/// A repository with a linked work tree, as git creates them.
fn linked() -> Trees {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().canonicalize().unwrap();
    let tree = base.join("main/.git/worktrees/work");
    fs::create_dir_all(&tree).unwrap();
    fs::create_dir_all(base.join("work")).unwrap();
    fs::write(base.join("main/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(tree.join("commondir"), "../..\n").unwrap();
    fs::write(tree.join("gitdir"), format!("{}\n", base.join("work/.git").display())).unwrap();
    fs::write(base.join("work/.git"), format!("gitdir: {}\n", tree.display())).unwrap();
    Trees { base, _directory: directory }
}

#[test]
fn a_linked_work_tree_has_its_repository_apart() {
    let trees = linked();
    let linked_repository = linked_repository(&trees.base.join("work")).unwrap();
    assert_eq!(linked_repository.common, trees.base.join("main/.git"));
    assert_eq!(linked_repository.tree, trees.base.join("main/.git/worktrees/work"));
}

#[test]
fn a_pointer_by_relative_path_counts_as_well() {
    let trees = linked();
    fs::write(trees.base.join("work/.git"), "gitdir: ../main/.git/worktrees/work\n").unwrap();
    fs::write(trees.base.join("main/.git/worktrees/work/gitdir"), "../../../../work/.git\n").unwrap();
    assert!(linked_repository(&trees.base.join("work")).is_some());
}

#[test]
fn a_pointer_that_nothing_points_back_to_does_not_count() {
    let trees = linked();
    fs::create_dir_all(trees.base.join("thief")).unwrap();
    fs::copy(trees.base.join("work/.git"), trees.base.join("thief/.git")).unwrap();
    assert!(linked_repository(&trees.base.join("thief")).is_none());
    fs::write(trees.base.join("thief/.git"), format!("gitdir: {}\n", trees.base.display())).unwrap();
    assert!(linked_repository(&trees.base.join("thief")).is_none());
}

#[test]
fn a_pointer_into_the_workspace_itself_does_not_count() {
    let trees = linked();
    let work = trees.base.join("work");
    fs::create_dir_all(work.join("fake")).unwrap();
    fs::write(work.join(".git"), "gitdir: fake\n").unwrap();
    fs::write(work.join("fake/gitdir"), format!("{}\n", work.join(".git").display())).unwrap();
    fs::write(work.join("fake/commondir"), "/\n").unwrap();
    assert!(linked_repository(&work).is_none());
}

#[test]
fn an_ordinary_repository_is_not_apart() {
    let trees = linked();
    assert!(linked_repository(&trees.base.join("main")).is_none());
    assert!(linked_repository(&trees.base).is_none());
}

#[test]
fn only_who_the_user_is_remains_of_the_settings() {
    let text = "# mine\n[user]\n\tname = Some Body\n email=some@body\n\tsigningkey = KEY\n[credential \"https://x\"]\n\thelper = !steal\n[url \"https://token@x/\"]\n\tinsteadOf = https://x/\n[Core]\n\tautocrlf = input\n\tpager = less\n[init]\n\tdefaultBranch = trunk\n[user]\n\tname = goes \\\n on\n";
    assert_eq!(
        only_identity(text),
        "[user]\n\tname = Some Body\n[user]\n\temail = some@body\n[core]\n\tautocrlf = input\n[init]\n\tdefaultbranch = trunk\n"
    );
}
