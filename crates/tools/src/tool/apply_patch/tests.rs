//! Properties, and settling of an interrupted patch; the case folders cover everything else.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::json;

use super::{FileSource, plan};
use crate::test_support::TestWorkspace;
use crate::tool::InterruptedOutcome;
use crate::workspace::content::{ContentHash, FileChange};

struct Memory(BTreeMap<String, Vec<u8>>);

impl FileSource for Memory {
    fn name(&self, given: &str) -> Result<String, String> {
        Ok(given.to_owned())
    }

    fn content(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(self.0.get(name).cloned())
    }
}

fn applied(content: &str, patch: &str) -> Result<String, Vec<String>> {
    let source = Memory(BTreeMap::from([("f".to_owned(), content.as_bytes().to_vec())]));
    let planned = plan(patch, &source)?;
    let after = planned
        .iter()
        .find(|file| file.name == "f")
        .map_or(content.as_bytes(), |file| file.after.as_deref().unwrap());
    Ok(String::from_utf8(after.to_vec()).unwrap())
}

fn change(path: &str, before: Option<&str>, after: Option<&str>) -> FileChange {
    let hash = |text: &str| ContentHash::of(text.as_bytes());
    FileChange { path: path.to_owned(), before: before.map(hash), after: after.map(hash), mode: None }
}

const PATCH: &str = "*** Begin Patch\n*** Update File: a\n@@\n-one\n+1\n*** Update File: b\n*** Move to: sub/c\n@@\n-two\n+2\n*** Delete File: d\n*** Add File: e\n+five\n*** End Patch\n";

fn patched() -> TestWorkspace {
    TestWorkspace::new(&[("a", "one\n"), ("b", "two\n"), ("d", "four\n")])
}

#[test]
fn one_intent_covers_all_files() {
    let trial = patched();
    let prepared = trial.prepare("apply_patch", &json!({ "patch": PATCH })).unwrap();
    let changes = [
        change("a", Some("one\n"), Some("1\n")),
        change("b", Some("two\n"), None),
        change("d", Some("four\n"), None),
        change("e", None, Some("five\n")),
        change("sub/c", None, Some("2\n")),
    ];
    let kept = [("a", "one\n"), ("b", "two\n"), ("d", "four\n")]
        .map(|(path, text)| json!({ "path": path, "mode": 0o644, "text": text }));
    let directories = [json!({ "made": "sub" })];
    assert_eq!(prepared.intent, json!({ "changes": changes, "kept": kept, "directories": directories }));
    assert_eq!((trial.content("a"), trial.path("e").exists()), ("one\n".to_owned(), false));
    let output = trial.perform("apply_patch", prepared);
    assert_eq!(output.changed, changes);
    assert_snapshot!(output.content, @"
    Applied to 4 files.
    changed `a`
    1	1
    deleted `d`
    added `e` (1 line)
    moved `b` to `sub/c`
    1	2
    ");
}

#[test]
fn an_interrupted_patch_is_completed_from_any_point() {
    // In the order in which the changes are made: removals last.
    let steps: [&dyn Fn(&TestWorkspace); 5] = [
        &|trial| trial.put("a", "1\n"),
        &|trial| trial.put("e", "five\n"),
        &|trial| trial.put("sub/c", "2\n"),
        &|trial| std::fs::remove_file(trial.path("b")).unwrap(),
        &|trial| std::fs::remove_file(trial.path("d")).unwrap(),
    ];
    for reached in 0..=steps.len() {
        let trial = patched();
        let arguments = json!({ "patch": PATCH });
        let intent = trial.prepare("apply_patch", &arguments).unwrap().intent;
        steps[..reached].iter().for_each(|step| step(&trial));
        let settled = trial.settle("apply_patch", &arguments, &intent);
        if reached == 0 {
            assert_eq!(settled, InterruptedOutcome::Redo);
            continue;
        }
        let InterruptedOutcome::Done(output) = settled else { panic!("after {reached}: {settled:?}") };
        assert_eq!(output.changed.len(), 5);
        assert_eq!(
            (trial.content("a"), trial.content("sub/c"), trial.content("e")),
            ("1\n".to_owned(), "2\n".to_owned(), "five\n".to_owned())
        );
        assert!(!trial.path("b").exists() && !trial.path("d").exists());
    }
}

#[test]
fn an_interrupted_patch_on_files_that_changed_since_is_unknown() {
    let trial = patched();
    let arguments = json!({ "patch": PATCH });
    let intent = trial.prepare("apply_patch", &arguments).unwrap().intent;
    trial.put("a", "1\n");
    trial.put("d", "somebody else\n");
    let InterruptedOutcome::Unknown(output) = trial.settle("apply_patch", &arguments, &intent) else {
        panic!("it must be unknown")
    };
    assert!(output.content.contains("`d`"), "{}", output.content);
    assert_eq!(trial.content("b"), "two\n");
}

#[test]
fn two_names_of_one_file_are_refused() {
    let trial = TestWorkspace::new(&[("a", "one\ntwo\n")]);
    symlink("a", trial.path("b")).unwrap();
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-one\n+1\n*** Update File: b\n@@\n-two\n+2\n*** End Patch\n";
    assert_snapshot!(trial.refusal("apply_patch", json!({ "patch": patch })), @"`b`: it is the same file as `a`, which is changed too.");
    assert_eq!(trial.content("a"), "one\ntwo\n");
}

#[test]
fn a_patch_needs_no_fresh_view_and_gives_one() {
    let trial = TestWorkspace::new(&[("a", "one\ntwo\n")]);
    let patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+1\n";
    trial.answer("apply_patch", json!({ "input": patch }));
    trial.answer("edit_file", json!({"path": "a", "old": "two", "new": "2"}));
    assert_eq!(trial.content("a"), "1\n2\n");
}

proptest! {
    #[test]
    fn a_diff_turns_one_text_into_the_other(old in "([abc]{0,2}\n){0,12}[abc]{0,2}", new in "([abc]{0,2}\n){0,12}[abc]{0,2}", context in 0usize..4) {
        prop_assume!(old != new && !old.is_empty() && !new.is_empty());
        let diff = similar::TextDiff::from_lines(&old, &new).unified_diff().context_radius(context).header("a/f", "b/f").to_string();
        prop_assert_eq!(applied(&old, &diff), Ok(new), "{}", diff);
    }

    #[test]
    fn a_diff_of_a_crlf_file_keeps_crlf(lines in proptest::collection::vec("[a-z]{1,3}", 1..12), at in 0usize..12, new in "[A-Z]{1,3}") {
        let at = at.min(lines.len() - 1);
        let text = |lines: &[String], ending: &str| lines.iter().map(|line| format!("{line}{ending}")).collect::<String>();
        let mut changed = lines.clone();
        changed[at] = new;
        let diff = similar::TextDiff::from_lines(text(&lines, "\n"), text(&changed, "\n")).unified_diff().header("f", "f").to_string();
        prop_assert_eq!(applied(&text(&lines, "\r\n"), &diff).unwrap(), text(&changed, "\r\n"));
    }

    #[test]
    fn no_patch_makes_it_panic(content in any::<String>(), patch in any::<String>()) {
        let _ = applied(&content, &patch);
    }

    #[test]
    fn no_damaged_patch_makes_it_panic(content in "([ab ]{0,3}\r?\n?){0,8}", body in "((@@|[ +-]|\\*\\*\\*|--- |\\+\\+\\+ |\\\\ )?[ab, ]{0,3}\n){0,12}", unified in any::<bool>()) {
        let patch = if unified { format!("--- a/f\n+++ b/f\n@@ -1 +1 @@\n{body}") } else { format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch\n") };
        let _ = applied(&content, &patch);
    }
}

/// Reads all files of the workspace.
fn file_contents(trial: &TestWorkspace) -> BTreeMap<String, Vec<u8>> {
    let root = trial.path("");
    let mut found = BTreeMap::new();
    let mut ahead = vec![root.clone()];
    while let Some(directory) = ahead.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                ahead.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                found.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Generates one section of a patch, valid or not.
fn section() -> impl Strategy<Value = String> {
    let file = "(a|b|c|sub/n)";
    let line = "[xyz]";
    prop_oneof![
        6 => (file, line, line, "[PQ]").prop_map(|(file, before, old, new)| format!("*** Update File: {file}\n@@\n {before}\n-{old}\n+{new}\n")),
        3 => (file, line, "[PQ]").prop_map(|(file, old, new)| format!("*** Update File: {file}\n@@\n-{old}\n+{new}\n")),
        1 => file.prop_map(|file| format!("*** Delete File: {file}\n")),
        2 => (file, "[PQ]").prop_map(|(file, new)| format!("*** Add File: {file}\n+{new}\n")),
        1 => (file, file, line, "[PQ]").prop_map(|(file, to, old, new)| format!("*** Update File: {file}\n*** Move to: {to}\n@@\n-{old}\n+{new}\n")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_patch_changes_what_it_says_or_nothing(
        files in proptest::collection::vec("([xyz]\n){1,6}", 3),
        sections in proptest::collection::vec(section(), 1..5),
    ) {
        let named: Vec<(&str, &str)> = ["a", "b", "c"].into_iter().zip(files.iter().map(String::as_str)).collect();
        let trial = TestWorkspace::new(&named);
        let before = file_contents(&trial);
        let patch = format!("*** Begin Patch\n{}*** End Patch\n", sections.concat());
        let output = trial.call("apply_patch", json!({ "patch": patch }));
        let after = file_contents(&trial);
        let differs = |name: &&String| before.get(*name) != after.get(*name);
        let all: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let mut changed: Vec<FileChange> = all.into_iter().filter(differs).map(|name| FileChange {
            path: name.clone(),
            before: before.get(name).map(|content| ContentHash::of(content)),
            after: after.get(name).map(|content| ContentHash::of(content)),
            mode: None,
        }).collect();
        if output.ok {
            let mut message = output.changed.clone();
            message.retain(|change| change.before != change.after);
            message.sort_by(|one, other| one.path.cmp(&other.path));
            changed.sort_by(|one, other| one.path.cmp(&other.path));
            prop_assert_eq!(message, changed, "{}\n{}", patch, output.content);
            // Every line of the result comes from the file or from the patch.
            let known = |line: &str| "xyz".contains(line) || patch.contains(&format!("+{line}\n"));
            for (name, content) in &after {
                let text = String::from_utf8(content.clone()).unwrap();
                prop_assert!(text.lines().all(known), "{}: {:?}\n{}", name, text, patch);
            }
        } else {
            prop_assert_eq!(changed, vec![], "{}\n{}", patch, output.content);
        }
    }
}
