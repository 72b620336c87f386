//! Consistency of the bundled files. `tests/demo.rs` runs the complete demo.

use std::collections::HashMap;

use fusee::engine::model::script::Script;
use serde_json::Value;

use super::change::changes;
use super::*;

fn replies() -> Vec<Value> {
    recording(RECORDING, u64::MAX)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

/// The arguments of all calls of one tool.
fn calls(tool: &str) -> Vec<Value> {
    let calls =
        replies().into_iter().flat_map(|reply| reply["tool_calls"].as_array().cloned().unwrap_or_default());
    calls.filter(|call| call["name"] == tool).map(|call| call["arguments"].clone()).collect()
}

#[test]
fn the_recording_is_a_script_that_the_model_crate_reads() {
    assert!(Script::parse("demo", "recording.jsonl", &recording(RECORDING, 0)).is_ok());
    assert!(Script::parse("demo", "review.jsonl", &recording(REVIEW, 0)).is_ok());
}

#[test]
fn each_edit_of_the_recording_finds_its_text_once_in_the_project() {
    let mut files: HashMap<&str, String> =
        FILES.iter().map(|(path, text)| (*path, (*text).to_owned())).collect();
    let edits = calls("edit_file");
    assert_eq!(edits.len(), 2);
    for edit in &edits {
        let (path, old) = (edit["path"].as_str().expect("a path"), edit["old"].as_str().expect("a text"));
        let file = files.get_mut(path).expect("a file of the project");
        assert_eq!(file.matches(old).count(), 1, "{old}");
        *file = file.replace(old, edit["new"].as_str().expect("a text"));
    }
}

#[test]
fn the_recording_waits_no_longer_than_it_may_and_long_enough_to_be_watched() {
    let waits = |longest| -> Vec<u64> {
        let lines: Vec<Value> = recording(RECORDING, longest)
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line of JSON"))
            .collect();
        // The line with a pattern is only played after a kill.
        lines
            .iter()
            .filter(|line| line["match"].is_null())
            .filter_map(|line| line["delay_ms"].as_u64())
            .collect()
    };
    assert!(waits(0).iter().all(|wait| *wait == 0));
    assert!(waits(200).iter().all(|wait| *wait == 200));
    let whole: u64 = waits(u64::MAX).iter().sum();
    assert!((5_000..9_000).contains(&whole), "{whole} ms");
}

#[test]
fn an_unpacked_project_is_as_bundled_and_goes_in_the_end_unless_it_is_kept() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    for keep in [false, true] {
        let unpacked =
            UnpackedDemo::make(new_directory(temporary.path(), "x"), 0, keep).expect("an unpacked demo");
        let project = unpacked.project();
        assert_eq!(changes(&project, &[]), []);
        assert!(project.join(".fusee").is_dir());
        drop(unpacked);
        assert_eq!(project.exists(), keep);
    }
}

#[test]
fn a_directory_that_is_there_already_is_not_touched() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let taken = new_directory(temporary.path(), "x");
    fs::create_dir(&taken).expect("a directory");
    assert!(UnpackedDemo::make(taken.clone(), 0, false).is_err());
    assert!(taken.exists());
}

#[test]
fn changes_are_shown_as_a_diff_new_files_and_deleted_ones_included() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let unpacked =
        UnpackedDemo::make(new_directory(temporary.path(), "x"), 0, false).expect("an unpacked demo");
    let project = unpacked.project();
    fs::write(project.join(".gitignore"), "__pycache__/\n").expect("a file");
    fs::write(project.join("NOTES"), "one\n").expect("a file");
    fs::remove_file(project.join("tests/__init__.py")).expect("a file");
    let found = changes(&project, &["NOTES".to_owned(), "freetime/day.py".to_owned(), "gone".to_owned()]);
    let shown: Vec<String> = found
        .iter()
        .map(|change| format!("{} +{} -{}\n{}", change.path, change.added, change.removed, change.diff))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    .gitignore +0 -1
    --- a/.gitignore
    +++ b/.gitignore
    @@ -1,2 +1 @@
     __pycache__/
    -.fusee/

    NOTES +1 -0
    --- /dev/null
    +++ b/NOTES
    @@ -0,0 +1 @@
    +one

    tests/__init__.py +0 -0
    ");
}
