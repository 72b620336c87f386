//! Where a group can be made, on machines of each kind.

use super::*;

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

#[test]
fn each_hierarchy_of_the_first_version_has_its_own_place() {
    let tree = tree(&[("memory/a/b/tasks", ""), ("pids/tasks", ""), ("cpu/tasks", "")]);
    let own = "9:name=systemd:/\n8:pids:/elsewhere\n4:memory:/a/b\n1:cpu:/\n0::/\n";
    let place = |parent: &str, controller| Place {
        version: Version::One,
        parent: tree.path().join(parent),
        controllers: vec![controller],
    };
    assert_eq!(
        places(own, tree.path()),
        [place("pids/", Controller::Tasks), place("memory/a/b", Controller::Memory)]
    );
}

#[test]
fn in_the_unified_hierarchy_the_nearest_that_hands_on_is_the_place() {
    let tree = tree(&[
        ("cgroup.controllers", "cpu memory pids\n"),
        ("cgroup.subtree_control", "cpu memory pids\n"),
        ("user/app/cgroup.subtree_control", "memory pids\n"),
        ("user/app/term/cgroup.subtree_control", "\n"),
        ("user/app/term/memory.max", "max\n"),
        ("user/app/term/pids.max", "max\n"),
    ]);
    let found = places("0::/user/app/term\n", tree.path());
    let parent = tree.path().join("user/app");
    let controllers = vec![Controller::Memory, Controller::Tasks];
    assert_eq!(found, [Place { version: Version::Two, parent, controllers }]);
}

#[test]
fn bounds_that_somebody_set_are_not_left() {
    let tree = tree(&[
        ("cgroup.controllers", "memory\n"),
        ("cgroup.subtree_control", "memory\n"),
        ("job/cgroup.subtree_control", ""),
        ("job/memory.max", "1000000\n"),
    ]);
    assert_eq!(places("0::/job\n", tree.path()), []);
}

#[test]
fn without_groups_there_is_no_place() {
    let tree = tree(&[]);
    assert_eq!(places("", tree.path()), []);
    assert_eq!(places("0::/\n4:memory:/\nnonsense\n", tree.path()), []);
}

#[test]
fn bounds_are_never_below_what_one_command_may_use() {
    let large = Allowance { memory_bytes: u64::MAX, processes: 1 << 20, ..Allowance::default() };
    assert_eq!(Bounds::around(&large), Bounds { memory_bytes: u64::MAX, tasks: 2 << 20 });
    let small = Allowance { memory_bytes: 1, processes: 1, ..Allowance::default() };
    let usual = Allowance::usual().memory_bytes;
    assert_eq!(Bounds::around(&small), Bounds { memory_bytes: usual, tasks: LEAST_TASKS });
}
