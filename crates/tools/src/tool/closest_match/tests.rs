//! Which passage is found, and that the search stays cheap.

use std::time::{Duration, Instant};

use super::find;

#[test]
fn the_place_with_most_lines_in_common_wins_and_the_first_of_equals() {
    let text = "a one\nb two\nc three\n\na one\nb two\nd four\n";
    assert_eq!(find(text, "a one\nx\nd four\n").unwrap().first, 4);
    assert_eq!(find(text, "a one\nx\n").unwrap().first, 0);
}

#[test]
fn a_wanted_text_that_reaches_over_the_end_is_cut_there() {
    let place = find("alpha\nbeta\n", "beta\ngamma\ndelta\n").unwrap();
    assert_eq!((place.first, place.found), (1, vec!["beta".to_owned()]));
}

#[test]
fn a_large_file_is_searched_in_reasonable_time() {
    let text: String =
        (0..200_000).map(|line| format!("    let value_{line} = compute({line});\n")).collect();
    let begun = Instant::now();
    assert!(find(&text, "let valeu = compte(199);\n").is_some());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}
