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
