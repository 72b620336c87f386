//! Which names count as similar.

use super::*;

#[test]
fn typos_and_separators_are_near() {
    let names = ["read_files", "write_file", "search_text", "shell"];
    assert_eq!(nearest("read-files", names), ["read_files"]);
    assert_eq!(nearest("raed_files", names), ["read_files"]);
    assert_eq!(nearest("Shell", names), ["shell"]);
}

#[test]
fn far_names_and_the_name_itself_are_not() {
    assert!(nearest("zebra", ["read_files", "shell"]).is_empty());
    assert!(nearest("shell", ["shell"]).is_empty());
    assert!(nearest("x", ["y", "z"]).is_empty());
    assert!(nearest("", ["a"]).is_empty());
}

#[test]
fn at_most_three_best_first_without_repeats() {
    let names = ["let", "left", "lets", "letx", "let", "late"];
    assert_eq!(nearest("lett", names), ["left", "let", "lets"]);
}

#[test]
fn phrases_name_one_two_or_three() {
    assert_eq!(did_you_mean("fiter", ["filter"]).unwrap(), "did you mean `filter`?");
    assert_eq!(did_you_mean("frist", ["first", "fist"]).unwrap(), "did you mean `first` or `fist`?");
    assert_eq!(did_you_mean("frist", ["shell"]), None);
}

#[test]
fn a_hostile_name_costs_nothing() {
    let long = "x".repeat(10_000_000);
    assert!(nearest(&long, ["xx"]).is_empty());
    assert!(nearest("xx", [long.as_str()]).is_empty());
}
