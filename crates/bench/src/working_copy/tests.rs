//! What enters a working copy, and what scoring restores.

use std::os::unix::fs::symlink;

use super::*;
use crate::language::TestCommands;
use crate::suite::Suite;

fn demo_case(folder: &Path) -> Case {
    let demo = Suite::write_demo(folder).unwrap();
    let suite = Suite::read(&demo, &TestCommands::new()).unwrap();
    suite.cases.into_iter().find(|case| case.name == "bus-times").unwrap()
}

fn listing(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = crate::suite::table::tree(folder)
        .unwrap()
        .into_iter()
        .map(|file| file.path.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn only_the_files_of_the_task_enter_the_working_copy() {
    let folder = tempfile::tempdir().unwrap();
    let case = demo_case(folder.path());
    let copy = WorkingCopy::at(folder.path().join("trial"));
    assert_eq!(copy.generation(), None);
    copy.write_files(&case, 3).unwrap();
    assert_eq!(copy.generation(), Some(3));
    assert_eq!(listing(&copy.project()), ["bus_times.py", "bus_times_test.py"]);
}

#[test]
fn tests_are_restored_whatever_was_put_in_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let case = demo_case(folder.path());
    let copy = WorkingCopy::at(folder.path().join("trial"));
    copy.write_files(&case, 0).unwrap();
    let original = fs::read(copy.project().join("bus_times_test.py")).unwrap();
    let outside = folder.path().join("outside");
    fs::write(&outside, "untouched").unwrap();
    fs::remove_file(copy.project().join("bus_times_test.py")).unwrap();
    symlink(&outside, copy.project().join("bus_times_test.py")).unwrap();
    fs::write(copy.project().join("bus_times.py"), "solved").unwrap();
    fs::write(copy.project().join("helper.py"), "more").unwrap();
    copy.copy_for_scoring(&case).unwrap();
    assert_eq!(fs::read(copy.scored().join("bus_times_test.py")).unwrap(), original);
    assert_eq!(fs::read_to_string(copy.scored().join("bus_times.py")).unwrap(), "solved");
    assert_eq!(fs::read_to_string(copy.scored().join("helper.py")).unwrap(), "more");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "untouched");
}
