//! Which lines a search finds, that its answer is deterministic, and the answer for no match.

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::json;

use crate::test_support::TestWorkspace;

fn project() -> TestWorkspace {
    let trial = TestWorkspace::new(&[
        (".gitignore", "build/\n"),
        (".env", "needle\n"),
        ("b.rs", "fn needle() {}\nlet x = 1;\n  needle();\n"),
        ("a/c.py", "def f(x):\r\n    return needle(x)\r\n"),
        ("a/nothing.py", "pass\n"),
        ("build/out.rs", "needle\n"),
    ]);
    trial.put("binary", b"needle\0needle\n");
    trial
}

#[test]
fn matches_come_by_path_and_line() {
    assert_snapshot!(project().answer("search_text", json!({"pattern": "needle"})), @"
    a/c.py
      2:     return needle(x)
    b.rs
      1: fn needle() {}
      3:   needle();
    ");
}

#[test]
fn patterns_are_regular_unless_literal() {
    let trial = project();
    assert_snapshot!(trial.answer("search_text", json!({"pattern": r"^\s+needle\("})), @"
    b.rs
      3:   needle();
    ");
    assert_snapshot!(trial.answer("search_text", json!({"pattern": "f(x)", "literal": true})), @"
    a/c.py
      1: def f(x):
    ");
    assert_snapshot!(trial.answer("search_text", json!({"pattern": "(?i)NEEDLE", "path": "a"})), @"
    a/c.py
      2:     return needle(x)
    ");
    assert_snapshot!(trial.answer("search_text", json!({"pattern": "x\\):$"})), @"Nothing matches `x\\):$` in `.`. Set `literal` to true if this is plain text.");
}

#[test]
fn a_pattern_may_reach_over_lines() {
    assert_snapshot!(project().answer("search_text", json!({"pattern": "1;\\n  needle"})), @"
    b.rs
      2: let x = 1;
      3:   needle();
    ");
}

#[test]
fn files_are_chosen_by_path_and_include() {
    let trial = project();
    assert_snapshot!(trial.answer("search_text", json!({"pattern": "needle", "include": "*.py"})), @"
    a/c.py
      2:     return needle(x)
    ");
    assert_snapshot!(trial.answer("search_text", json!({"pattern": "needle", "include": ".env*"})), @"
    .env
      1: needle
    ");
    assert_snapshot!(trial.answer("search_text", json!({"pattern": "needle", "path": "build/out.rs"})), @"
    build/out.rs
      1: needle
    ");
    assert_snapshot!(trial.refusal("search_text", json!({"pattern": "needle", "path": "c.py"})), @"`c.py` does not exist. Did you mean `a/c.py`?");
}

#[test]
fn nothing_found_and_wrong_patterns_say_what_to_try() {
    let trial = project();
    assert_snapshot!(trial.answer("search_text", json!({"pattern": "haystack", "include": "*.rs"})), @"Nothing matches `haystack` in `.`, files `*.rs`. Try a shorter pattern, or `(?i)` before it to ignore case.");
    assert_snapshot!(trial.refusal("search_text", json!({"pattern": "f(x"})), @"`f(x` is not a valid regular expression: unclosed group. To search for this very text, set `literal` to true.");
}

#[test]
fn the_first_matches_are_shown_and_always_the_same_ones() {
    let trial = TestWorkspace::new(&[]);
    for file in 0..60 {
        trial.put(&format!("d{}/f{file:02}", file % 5), "hit\n".repeat(1 + file % 4));
    }
    let first = trial.call("search_text", json!({"pattern": "hit", "max_results": 25}));
    assert!(first.truncated);
    assert!(
        first
            .content
            .ends_with("[the first 25 matches; there are more. Narrow it down with `path` or `include`]\n"),
        "{}",
        first.content
    );
    let whole = trial.call("search_text", json!({"pattern": "hit", "max_results": 1000}));
    assert!(!whole.truncated);
    let cut = first.content.lines().take_while(|line| !line.starts_with('[')).collect::<Vec<_>>().join("\n");
    assert!(whole.content.starts_with(&cut), "{cut}");
    for _ in 0..10 {
        assert_eq!(trial.call("search_text", json!({"pattern": "hit", "max_results": 25})), first);
    }
}

#[test]
fn exactly_as_many_as_asked_for_is_not_a_cut() {
    let trial = TestWorkspace::new(&[("a", "hit\nhit\n"), ("b", "hit\n")]);
    assert!(!trial.call("search_text", json!({"pattern": "hit", "max_results": 3})).truncated);
    assert!(trial.call("search_text", json!({"pattern": "hit", "max_results": 2})).truncated);
    assert!(trial.call("search_text", json!({"pattern": "hit", "max_results": 1})).truncated);
}

#[test]
fn a_long_line_is_shown_around_its_match() {
    let trial =
        TestWorkspace::new(&[("min.js", &format!("{}needle{}\n", "é".repeat(5000), "b".repeat(5000)))]);
    let answer = trial.answer("search_text", json!({"pattern": "needle"}));
    assert_eq!(answer, format!("min.js\n  1: …{}needle{}…\n", "é".repeat(50), "b".repeat(294)));
}

proptest! {
    #[test]
    fn a_search_finds_what_a_plain_loop_finds(files in proptest::collection::btree_map("[a-d]{1,3}", "[ab\n]{0,40}", 1..12), pattern in "[ab]{1,3}") {
        let trial = TestWorkspace::new(&files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>());
        let mut expected = String::new();
        for (path, text) in &files {
            let hits: String = text.lines().enumerate().filter(|(_, line)| line.contains(&pattern)).map(|(at, line)| format!("  {}: {line}\n", at + 1)).collect();
            if !hits.is_empty() {
                expected.push_str(&format!("{path}\n{hits}"));
            }
        }
        let answer = trial.answer("search_text", json!({"pattern": pattern, "literal": true, "max_results": 1000}));
        if expected.is_empty() {
            prop_assert!(answer.starts_with("Nothing matches"));
        } else {
            prop_assert_eq!(answer, expected);
        }
    }
}
