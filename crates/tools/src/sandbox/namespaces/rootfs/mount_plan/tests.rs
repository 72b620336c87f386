//! The mounts planned for a policy.

use super::*;
use crate::sandbox::policy::MovedFolder;

fn policy(read: &[&str], write: &[&str], hidden: &[&str], scratch: &[&str]) -> Policy {
    let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
    Policy {
        read: paths(read),
        write: paths(write),
        hidden: paths(hidden),
        scratch: paths(scratch),
        ..Policy::default()
    }
}

fn shown(policy: &Policy) -> Vec<String> {
    let show = |entry: &PlannedMount<'_>| {
        let links = if entry.links == SymlinkPolicy::Refused { " without links" } else { "" };
        format!("{:?} {}{links}", entry.kind, entry.path.display())
    };
    plan(policy).iter().map(show).collect()
}

#[test]
fn what_lies_around_others_comes_first() {
    let policy = policy(
        &["/usr", "/home/u/.cargo"],
        &["/home/u/work"],
        &["/home/u/.cargo/credentials"],
        &["/tmp", "/home/u"],
    );
    assert_eq!(
        shown(&policy),
        [
            "Scratch /home/u",
            "Read /home/u/.cargo",
            "Hidden /home/u/.cargo/credentials",
            "Write /home/u/work",
            "Scratch /tmp",
            "Read /usr",
        ]
    );
}

#[test]
fn what_changes_nothing_is_left_out() {
    let policy = policy(
        &["/usr", "/usr/local/bin", "/w"],
        &["/w", "/w/deep"],
        &["/home/u/.ssh", "/tmp/secret", "/w/secret", "/w/secret/more"],
        &["/tmp", "/w/tmp", "/tmp/own"],
    );
    assert_eq!(
        shown(&policy),
        ["Scratch /tmp", "Scratch /tmp/own", "Read /usr", "Write /w", "Hidden /w/secret without links"]
    );
}

#[test]
fn names_that_begin_alike_do_not_lie_in_each_other() {
    assert_eq!(
        shown(&policy(&["/a", "/a-b", "/a/b"], &["/a-b/c"], &[], &[])),
        ["Read /a", "Read /a-b", "Write /a-b/c"]
    );
}

#[test]
fn a_workspace_around_a_home_keeps_toolchains_from_being_changed() {
    let policy = policy(&["/", "/home/u/.cargo"], &["/home/u"], &["/home/u/.ssh"], &["/home/u", "/tmp"]);
    assert_eq!(
        shown(&policy),
        [
            "Read /",
            "Write /home/u",
            "Read /home/u/.cargo without links",
            "Hidden /home/u/.ssh without links",
            "Scratch /tmp",
        ]
    );
}

#[test]
fn a_moved_folder_is_mounted_at_its_new_path_only() {
    let moved = MovedFolder { source: "/tmp/copy".into(), target: "/workspace".into(), writable: true };
    let policy = Policy { moved: vec![moved], ..policy(&["/usr"], &["/tmp/copy"], &[], &["/tmp"]) };
    let mounts: Vec<(&Path, &Path, MountKind)> =
        plan(&policy).iter().map(|mount| (mount.path, mount.source, mount.kind)).collect();
    assert_eq!(
        mounts,
        [
            (Path::new("/tmp"), Path::new("/tmp"), MountKind::Scratch),
            (Path::new("/usr"), Path::new("/usr"), MountKind::Read),
            (Path::new("/workspace"), Path::new("/tmp/copy"), MountKind::Write),
        ]
    );
    assert_eq!(policy.inside(Path::new("/tmp/copy/a/b")), Path::new("/workspace/a/b"));
    assert_eq!(policy.inside(Path::new("/tmp/copy")), Path::new("/workspace"));
    assert_eq!(policy.inside(Path::new("/tmp/copyist")), Path::new("/tmp/copyist"));
}
