//! The kill injection against `sh` and `dd`: the writes it must count, and the file states it must leave.

use super::*;
use crate::project::Project;

fn write_thrice(project: &Project) -> Command<'_> {
    let write = "dd if=/dev/zero of=journal.db-wal bs=100 count=3 2>/dev/null; echo done";
    project.command("sh").args(["-c", write])
}

fn log_length(project: &Project) -> u64 {
    fs::metadata(project.dir().join("journal.db-wal")).map_or(0, |file| file.len())
}

#[test]
fn changes_of_files_are_listed_and_a_kill_falls_before_the_chosen_one() {
    use super::file_changes::{FileKillInjector, KILLED};
    let killer = FileKillInjector::build();
    let script = "mkdir d; echo a > d/a; chmod 600 d/a; mv d/a b; ln -s b c; ln b e; rm b; mkdir -p .fusee; echo x > .fusee/x";
    let run = |n: usize| {
        let project = Project::new();
        let (command, trace) = killer.command(&project, "sh", n);
        let outcome = command.args(["-c", script]).run();
        let left: Vec<bool> =
            ["d", "d/a", "b", "c"].map(|name| project.dir().join(name).symlink_metadata().is_ok()).into();
        (outcome, trace.changes(), left)
    };
    let (outcome, changes, _) = run(0);
    outcome.exits(0);
    assert_eq!(
        changes,
        ["mkdir d", "create d/a", "chmod d/a", "rename b", "symlink c", "link e", "unlink b"]
    );
    let (outcome, seen, left) = run(4);
    // The command in the shell was killed, not the shell: the rest of the script went on.
    outcome.exits(0);
    assert_eq!(seen[..4], changes[..4]);
    assert!(left[1] && !left[2], "{left:?}");
    let (outcome, seen, left) = run(2);
    outcome.exits(KILLED);
    assert_eq!((seen, left), (changes[..2].to_vec(), vec![true, false, false, false]));
}

#[test]
fn writes_to_the_journal_are_counted_and_others_are_not() {
    let project = Project::new();
    let killer = KillInjector::build();
    let (command, trace) = killer.watch(write_thrice(&project));
    command.run().exits(0);
    assert_eq!(trace.letters().trim_start_matches('t'), "www");
}

#[test]
fn the_process_ends_before_after_or_within_the_chosen_write() {
    let killer = KillInjector::build();
    for (when, length) in [(KillTime::Before, 100), (KillTime::Torn, 150), (KillTime::After, 200)] {
        let project = Project::new();
        let outcome = killer.kill_at(write_thrice(&project), 2, when).run().exits(0);
        assert_eq!((outcome.stdout.as_str(), log_length(&project)), ("done\n", length), "{when:?}");
    }
}
