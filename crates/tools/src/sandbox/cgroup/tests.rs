//! Where a cgroup can be created in different hierarchies.

use super::*;

const BOUNDS: CgroupLimits = CgroupLimits { memory_bytes: 1 << 30, tasks: 4096 };

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
    let place = |parent: &str, controller| CgroupParent {
        version: CgroupVersion::One,
        parent: tree.path().join(parent),
        controllers: vec![controller],
    };
    assert_eq!(
        places(own, tree.path(), BOUNDS),
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
    let found = places("0::/user/app/term\n", tree.path(), BOUNDS);
    let parent = tree.path().join("user/app");
    let controllers = vec![Controller::Memory, Controller::Tasks];
    assert_eq!(found, [CgroupParent { version: CgroupVersion::Two, parent, controllers }]);
}

#[test]
fn bounds_that_somebody_set_are_not_left() {
    let tree = tree(&[
        ("cgroup.controllers", "memory\n"),
        ("cgroup.subtree_control", "memory\n"),
        ("job/cgroup.subtree_control", ""),
        ("job/memory.max", "1000000\n"),
    ]);
    assert_eq!(places("0::/job\n", tree.path(), BOUNDS), []);
}

#[test]
fn without_groups_there_is_no_place() {
    let tree = tree(&[]);
    assert_eq!(places("", tree.path(), BOUNDS), []);
    assert_eq!(places("0::/\n4:memory:/\nnonsense\n", tree.path(), BOUNDS), []);
}

#[test]
fn a_service_managers_bound_on_processes_is_left_for_one_that_is_no_higher() {
    let place = |pids: &str, memory: &str| {
        let tree = tree(&[
            ("cgroup.controllers", "memory pids\n"),
            ("app.slice/cgroup.subtree_control", "memory pids\n"),
            ("app.slice/term.scope/cgroup.subtree_control", "\n"),
            ("app.slice/term.scope/pids.max", pids),
            ("app.slice/term.scope/memory.max", memory),
        ]);
        places("0::/app.slice/term.scope\n", tree.path(), BOUNDS).len()
    };
    assert_eq!(place("9000\n", "max\n"), 1);
    assert_eq!(place("4096\n", "max\n"), 1);
    assert_eq!(place("4095\n", "max\n"), 0);
    assert_eq!(place("9000\n", "8000000000\n"), 0);
}

#[test]
fn memory_that_is_swapped_out_does_not_escape_the_bound() {
    let tree = tree(&[("parent/cgroup.procs", "")]);
    let parent = tree.path().join("parent");
    let controllers = vec![Controller::Memory, Controller::Tasks];
    let own = rustix::process::getpid();
    for (version, swap, expected) in [
        (CgroupVersion::Two, "memory.swap.max", "0"),
        (CgroupVersion::One, "memory.memsw.limit_in_bytes", "1073741824"),
    ] {
        let place = CgroupParent { version, parent: parent.clone(), controllers: controllers.clone() };
        let made = make(&place, own, BOUNDS).unwrap();
        assert_eq!(fs::read_to_string(made.join(swap)).unwrap(), expected);
        assert_eq!(fs::read_to_string(made.join("pids.max")).unwrap(), "4096");
        fs::remove_dir_all(made).unwrap();
    }
}

/// Runs only where the kernel's own version 2 hierarchy is writable, with whatever controllers it has there.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test needs a process to move")]
fn a_process_is_moved_in_the_kernels_unified_hierarchy_and_the_group_goes_after_it() {
    let mounted = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];
    let is_unified = |path: &&&str| Path::new(path).join("cgroup.controllers").exists();
    let Some(top) = mounted.iter().find(is_unified).map(PathBuf::from) else { return };
    let parent = top.join(format!("test-{}", std::process::id()));
    if fs::create_dir(&parent).is_err() {
        return;
    }
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let place = CgroupParent { version: CgroupVersion::Two, parent: parent.clone(), controllers: Vec::new() };
    let made = make(&place, pid, BOUNDS);
    let moved = fs::read_to_string(format!("/proc/{}/cgroup", child.id())).unwrap();
    // It has a process, so it stays.
    remove_leftovers(&parent);
    let stayed = made.as_ref().is_ok_and(|directory| directory.is_dir());
    child.kill().unwrap();
    child.wait().unwrap();
    remove_leftovers(&parent);
    let swept = made.as_ref().is_ok_and(|directory| !directory.exists());
    let emptied = fs::remove_dir(&parent);
    let expected = format!("0::/test-{}/fusee-{}\n", std::process::id(), child.id());
    assert!(moved.contains(&expected), "{made:?} {moved}");
    assert!(stayed && swept && emptied.is_ok(), "{stayed} {swept} {emptied:?}");
}
