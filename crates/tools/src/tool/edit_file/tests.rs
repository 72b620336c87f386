//! Edits that are applied and edits that are refused, with their answers.

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::json;

use crate::test_support::TestWorkspace;

const PROGRAM: &str = "fn main() {\n    let answer = 41;\n    println!(\"{answer}\");\n}\n\nfn other() {\n    let answer = 41;\n}\n";

fn seen(files: &[(&str, &str)]) -> TestWorkspace {
    let trial = TestWorkspace::new(files);
    for (path, _) in files {
        trial.answer("read_file", json!({ "path": path }));
    }
    trial
}

#[test]
fn a_unique_text_is_replaced_and_its_region_shown() {
    let trial = seen(&[("main.rs", PROGRAM)]);
    let answer = trial.answer("edit_file", json!({"path": "main.rs", "old": "    println!(\"{answer}\");\n", "new": "    let more = answer + 1;\n    println!(\"{more}\");\n"}));
    assert_snapshot!(answer, @r#"
    Edited `main.rs`. The changed region is now:
    1	fn main() {
    2	    let answer = 41;
    3	    let more = answer + 1;
    4	    println!("{more}");
    5	}
    6	
    7	fn other() {
    "#);
    assert!(
        trial.content("main.rs").contains("41;\n    let more = answer + 1;\n    println!(\"{more}\");\n}\n")
    );
}

#[test]
fn a_text_that_occurs_more_than_once_needs_all() {
    let trial = seen(&[("main.rs", PROGRAM)]);
    assert_snapshot!(trial.refusal("edit_file", json!({"path": "main.rs", "old": "41", "new": "42"})), @"`old` occurs 2 times in `main.rs`, at lines 2, 7. Add lines around it until it is unique, or set `all` to true to replace every one.");
    assert_snapshot!(trial.answer("edit_file", json!({"path": "main.rs", "old": "41", "new": "42", "all": true})), @r#"
    Edited `main.rs`, 2 places. The changed region is now:
    1	fn main() {
    2	    let answer = 42;
    3	    println!("{answer}");
    4	}
    5	
    …
    4	}
    5	
    6	fn other() {
    7	    let answer = 42;
    8	}
    "#);
    assert_eq!(trial.content("main.rs"), PROGRAM.replace("41", "42"));
}

#[test]
fn an_edit_needs_a_fresh_view() {
    let trial = TestWorkspace::new(&[("a", "one\n")]);
    let edit = json!({"path": "a", "old": "one", "new": "two"});
    assert_snapshot!(trial.refusal("edit_file", edit.clone()), @"`a` exists and you have not seen what it holds. Read it with read_file first, then repeat the call.");
    trial.answer("read_files", json!({"paths": ["a"]}));
    trial.put("a", "one \n");
    assert_snapshot!(trial.refusal("edit_file", edit.clone()), @"`a` has changed since you last saw it. Read it again with read_file, then repeat the call.");
    trial.answer("read_file", json!({"path": "a"}));
    trial.answer("edit_file", edit);
    trial.answer("edit_file", json!({"path": "a", "old": "two", "new": "three"}));
    assert_eq!(trial.content("a"), "three \n");
}

#[test]
fn a_miss_shows_the_nearest_place_and_what_differs() {
    let trial = seen(&[("main.rs", PROGRAM)]);
    let miss = |old: &str| trial.refusal("edit_file", json!({"path": "main.rs", "old": old, "new": "x"}));
    assert_snapshot!(miss("let answer = 41;\nprintln!(\"{answer}\");\n"), @r#"
    `old` is not in `main.rs`; nothing was changed. The nearest place is at lines 2-3:
    2	    let answer = 41;
    3	    println!("{answer}");
    It differs only in indentation: take it exactly as it stands in the file.
    "#);
    assert_snapshot!(miss("fn main() {\n    let answer = 42;\n    println!(\"{answer}\");\n}"), @r#"
    `old` is not in `main.rs`; nothing was changed. The nearest place is at lines 1-4:
    1	fn main() {
    2	    let answer = 41;
    3	    println!("{answer}");
    4	}
    It differs from what was given (- in the file, + given):
    -     let answer = 41;
    +     let answer = 42;
    "#);
    assert_snapshot!(miss("fn othr() {"), @"
    `old` is not in `main.rs`; nothing was changed. The nearest place is at lines 6-6:
    6	fn other() {
    It differs from what was given (- in the file, + given):
    - fn other() {
    + fn othr() {
    ");
    assert_snapshot!(miss("zzz qqq"), @"`old` is not in `main.rs`; nothing was changed. Nothing in the file is like it; read the file again.");
    assert_eq!(trial.content("main.rs"), PROGRAM);
}

#[test]
fn edits_that_change_nothing_are_said_to() {
    let trial = seen(&[("a", "one\n")]);
    assert_snapshot!(trial.refusal("edit_file", json!({"path": "a", "old": "one", "new": "one"})), @"`old` and `new` are the same; `a` was not changed.");
    assert_snapshot!(trial.refusal("edit_file", json!({"path": "a", "old": "", "new": "one"})), @"`old` is empty. Give the text to replace; to write the whole of `a` use write_file.");
    assert_snapshot!(trial.refusal("edit_file", json!({"path": "b", "old": "x", "new": "y"})), @"`b` does not exist. Use find_files or list_dir to see what there is. To create it use write_file.");
}

#[test]
fn a_wrong_path_with_a_near_one_is_not_an_invitation_to_create_it() {
    let trial = seen(&[("solution.py", "one\n")]);
    assert_snapshot!(trial.refusal("edit_file", json!({"path": "src/solution.py", "old": "x", "new": "y"})), @"`src/solution.py` does not exist. Did you mean `solution.py`?");
}

#[test]
fn crlf_is_kept_when_line_feeds_are_given() {
    let trial = seen(&[("dos", "one\r\ntwo\r\nthree\r\n"), ("mixed", "one\r\ntwo\r\nthree\n")]);
    for path in ["dos", "mixed"] {
        trial.answer("edit_file", json!({"path": path, "old": "one\ntwo\n", "new": "1\n2\nand\n"}));
    }
    assert_eq!(trial.content("dos"), "1\r\n2\r\nand\r\nthree\r\n");
    assert_eq!(trial.content("mixed"), "1\r\n2\r\nand\r\nthree\n");
    trial.answer("edit_file", json!({"path": "dos", "old": "and", "new": "a\nb"}));
    assert_eq!(trial.content("dos"), "1\r\n2\r\na\r\nb\r\nthree\r\n");
}

#[test]
fn line_numbers_that_were_copied_along_are_taken_off() {
    let trial = seen(&[("main.rs", PROGRAM)]);
    let answer = trial.answer("edit_file", json!({"path": "main.rs", "old": "6\tfn other() {\n7\t    let answer = 41;\n", "new": "6\tfn other() {\n"}));
    assert!(
        answer.starts_with("Edited `main.rs` (line numbers were taken off `old`; leave them out). "),
        "{answer}"
    );
    assert!(trial.content("main.rs").ends_with("fn other() {\n}\n"));
}

#[test]
fn bytes_that_are_not_text_stay_as_they_are() {
    let trial = TestWorkspace::new(&[]);
    trial.put("latin", b"caf\xe9 one\n\xff two\n");
    trial.answer("read_file", json!({"path": "latin"}));
    trial.answer("edit_file", json!({"path": "latin", "old": "one", "new": "1"}));
    assert_eq!(std::fs::read(trial.path("latin")).unwrap(), b"caf\xe9 1\n\xff two\n");
}

proptest! {
    #[test]
    fn an_edit_does_what_replace_does(text in "[abc\n]{1,60}", old in "[abc\n]{1,4}", new in "[xyz]{0,4}\n?[xyz]") {
        let trial = seen(&[("f", &text)]);
        let output = trial.call("edit_file", json!({"path": "f", "old": old, "new": new, "all": true}));
        prop_assert_eq!(output.ok, text.contains(&old));
        prop_assert_eq!(trial.content("f"), text.replace(&old, &new));
    }

    #[test]
    fn no_miss_makes_it_panic(text in any::<String>(), old in any::<String>()) {
        let _ = crate::tool::closest_match::find(&text, &old).map(|place| place.describe(20));
    }
}
