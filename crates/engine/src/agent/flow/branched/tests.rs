//! Detection of read-only tasks in a plan.

use super::read_only_verb;

#[test]
fn tasks_that_only_look_are_known_by_their_verbs() {
    for (task, verb) in [
        ("Read the tests", Some("read")),
        ("review: leap.py", Some("review")),
        ("Read the tests and fix them", None),
        ("Implement leap()", None),
        ("Make it work", None),
        ("", None),
    ] {
        assert_eq!(read_only_verb(task), verb, "{task}");
    }
}
