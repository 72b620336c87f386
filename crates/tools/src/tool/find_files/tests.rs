//! Which files a pattern finds, and the answers for no match and for too many.

use insta::assert_snapshot;
use serde_json::json;

use crate::test_support::TestWorkspace;

fn project() -> TestWorkspace {
    TestWorkspace::new(&[
        (".gitignore", "build/\n"),
        (".github/workflows/ci.yml", ""),
        (".git/config.yml", ""),
        ("src/main.rs", ""),
        ("src/lib.rs", ""),
        ("src/parse/lexer.rs", ""),
        ("tests/lexer.py", ""),
        ("build/out.rs", ""),
    ])
}

#[test]
fn a_bare_pattern_means_names_and_one_with_a_slash_means_paths() {
    let trial = project();
    let find = |pattern: &str| trial.answer("find_files", json!({ "pattern": pattern }));
    assert_eq!(find("*.rs"), "src/lib.rs\nsrc/main.rs\nsrc/parse/lexer.rs\n");
    assert_eq!(find("lexer.*"), "src/parse/lexer.rs\ntests/lexer.py\n");
    assert_eq!(find("src/*.rs"), "src/lib.rs\nsrc/main.rs\n");
    assert_eq!(find("**/parse/**"), "src/parse/lexer.rs\n");
    assert_eq!(find("*.{py,yml}"), "tests/lexer.py\n");
    assert_eq!(find("*.py, main.*"), "src/main.rs\ntests/lexer.py\n");
    assert_eq!(find("parse/"), "src/parse\n");
    assert_eq!(
        find(&format!("{}/src/*.rs", trial.context.workspace.root().display())),
        "src/lib.rs\nsrc/main.rs\n"
    );
}

#[test]
fn a_start_directory_narrows_it_and_patterns_may_count_from_there() {
    let trial = project();
    for pattern in ["parse/*.rs", "src/parse/*.rs", "lexer.rs"] {
        assert_eq!(
            trial.answer("find_files", json!({"pattern": pattern, "path": "src"})),
            "src/parse/lexer.rs\n"
        );
    }
}

#[test]
fn hidden_files_are_found_when_the_pattern_names_them_but_never_gits() {
    let trial = project();
    assert_eq!(
        trial.answer("find_files", json!({"pattern": ".github/**/*.yml"})),
        ".github/workflows/ci.yml\n"
    );
    assert_eq!(trial.answer("find_files", json!({"pattern": ".git*"})), ".gitignore\n");
}

#[test]
fn nothing_found_says_where_else_there_is_something() {
    let trial = project();
    assert_snapshot!(trial.answer("find_files", json!({"pattern": "out.rs"})), @"No file matches `out.rs` in `.`. Among the hidden and ignored there are: build/out.rs.");
    assert_snapshot!(trial.answer("find_files", json!({"pattern": "*.java"})), @"No file matches `*.java` in `.`. Try a shorter pattern, such as `*part_of_the_name*`, or list_dir.");
}

#[test]
fn wrong_patterns_and_places_are_refused() {
    let trial = project();
    assert_snapshot!(trial.refusal("find_files", json!({"pattern": "a[b"})), @"`a[b` is not a valid pattern: unclosed character class; missing ']'. Use one such as `*.rs` or `src/**/*.py`.");
    assert_snapshot!(trial.refusal("find_files", json!({"pattern": "/"})), @"`/` matches nothing. Use a pattern such as `*.rs` or `src/**/*.py`.");
    assert_snapshot!(trial.refusal("find_files", json!({"pattern": "*", "path": "src/main.rs"})), @"`src/main.rs` is a file. Give the directory to look in as `path`.");
}

#[test]
fn too_many_are_cut_always_in_the_same_place() {
    let trial = TestWorkspace::new(&[]);
    for file in 0..400 {
        trial.put(&format!("d{}/f{file:03}", file % 7), "");
    }
    let first = trial.call("find_files", json!({"pattern": "f*"}));
    assert!(first.truncated);
    assert!(
        first.content.ends_with("[200 of 400 shown. Narrow it down with a longer pattern or with `path`]\n")
    );
    let mut sorted: Vec<&str> = first.content.lines().take(200).collect();
    sorted.sort_unstable();
    assert_eq!(sorted, first.content.lines().take(200).collect::<Vec<_>>());
    for _ in 0..5 {
        assert_eq!(trial.call("find_files", json!({"pattern": "f*"})), first);
    }
}
