use common_start::{abbreviations, common_start};

#[test]
fn common_letters() {
    assert_eq!(common_start(&["flower", "flow", "flight"]), "fl");
    assert_eq!(common_start(&["dog", "cat"]), "");
    assert_eq!(common_start(&["same", "same"]), "same");
    assert_eq!(common_start(&["one"]), "one");
}

#[test]
fn nothing_in_common() {
    assert_eq!(common_start(&[]), "");
    assert_eq!(common_start(&["", "abc"]), "");
    assert_eq!(common_start(&["abc", ""]), "");
}

#[test]
fn letters_are_not_bytes() {
    assert_eq!(common_start(&["über", "übel"]), "übe");
    // Both letters begin with the same byte.
    assert_eq!(common_start(&["xä", "xö"]), "x");
}

#[test]
fn short_forms() {
    assert_eq!(abbreviations(&["monday", "tuesday", "thursday"]), ["m", "tu", "th"]);
    assert_eq!(abbreviations(&["car", "cart", "dog"]), ["car", "cart", "d"]);
    assert_eq!(abbreviations(&["a", "a"]), ["a", "a"]);
    assert_eq!(abbreviations(&["äb", "öb"]), ["ä", "ö"]);
    assert_eq!(abbreviations(&["only"]), ["o"]);
    assert!(abbreviations(&[]).is_empty());
}
