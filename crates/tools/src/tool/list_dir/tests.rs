//! Content and depth of listings, and entries that are only named.

use std::os::unix::fs::symlink;

use insta::assert_snapshot;
use serde_json::json;

use crate::test_support::TestWorkspace;

#[test]
fn a_small_project_is_shown_whole() {
    let trial = TestWorkspace::new(&[
        ("Cargo.toml", "[package]\n"),
        (".gitignore", "target\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("src/deep/er/est/x.rs", ""),
        ("src-gen/a", ""),
        ("target/debug/big", "x"),
    ]);
    trial.put("large.bin", vec![0; 3 * 1024 * 1024 / 2]);
    symlink("src/main.rs", trial.path("link")).unwrap();
    assert_snapshot!(trial.answer("list_dir", json!({})), @"
    Cargo.toml  10 B
    large.bin  1.5 MB
    link -> src/main.rs
    src/
      deep/
        er/ …
      main.rs  13 B
    src-gen/
      a  0 B
    [directories marked … were not opened; list them for more]
    [hidden: .gitignore]
    [ignored: target]
    ");
    assert_snapshot!(trial.answer("list_dir", json!({"path": "target"})), @"
    debug/
      big  1 B
    ");
}

#[test]
fn levels_that_do_not_fit_are_not_opened() {
    let mut trial = TestWorkspace::new(&[]);
    for directory in 0..10 {
        for file in 0..10 {
            trial.put(&format!("d{directory}/f{file}"), "x");
        }
    }
    trial.context.limits.list_entries = 50;
    let answer = trial.answer("list_dir", json!({"path": "."}));
    assert_eq!(answer.lines().count(), 11);
    assert!(answer.starts_with("d0/ …\nd1/ …\n"), "{answer}");
}

#[test]
fn a_crowded_directory_is_cut_and_says_how_to_narrow_it_down() {
    let trial = TestWorkspace::new(&[]);
    for file in 0..300 {
        trial.put(&format!("f{file:03}"), "");
    }
    let output = trial.call("list_dir", json!({}));
    assert!(output.truncated);
    assert!(
        output
            .content
            .ends_with("f199  0 B\n[… 100 more entries. Use find_files with a pattern to narrow it down]\n")
    );
}

#[test]
fn files_missing_directories_and_empty_ones_are_named() {
    let trial = TestWorkspace::new(&[("src/a.rs", "x")]);
    std::fs::create_dir(trial.path("empty")).unwrap();
    assert_snapshot!(trial.answer("list_dir", json!({"path": "empty"})), @"`empty` is empty.");
    assert_snapshot!(trial.refusal("list_dir", json!({"path": "src/a.rs"})), @"`src/a.rs` is a file of 1 B. Use read_file to read it.");
    assert_snapshot!(trial.refusal("list_dir", json!({"path": "scr"})), @"`scr` does not exist. Did you mean `src`?");
}

#[test]
fn a_directory_behind_a_link_is_listed_found_and_searched() {
    let trial = TestWorkspace::new(&[("real/sub/a.rs", "needle\n")]);
    symlink("real", trial.path("link")).unwrap();
    assert_eq!(trial.answer("list_dir", json!({"path": "link"})), "sub/\n  a.rs  7 B\n");
    assert_eq!(trial.answer("find_files", json!({"pattern": "*.rs", "path": "link/sub"})), "real/sub/a.rs\n");
    assert_eq!(
        trial.answer("search_text", json!({"pattern": "needle", "path": "link"})),
        "real/sub/a.rs\n  1: needle\n"
    );
}
