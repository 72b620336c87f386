use reverse_words::{reverse_order, reverse_words};

#[test]
fn letters_are_reversed() {
    assert_eq!(reverse_words("hello world"), "olleh dlrow");
    assert_eq!(reverse_words("a"), "a");
    assert_eq!(reverse_words(""), "");
}

#[test]
fn spaces_stay() {
    assert_eq!(reverse_words("abc  de"), "cba  ed");
    assert_eq!(reverse_words(" ab "), " ba ");
}

#[test]
fn all_letters_work() {
    assert_eq!(reverse_words("été straße"), "été eßarts");
    assert_eq!(reverse_words("日本 語"), "本日 語");
}

#[test]
fn order_of_words() {
    assert_eq!(reverse_order("one two three"), "three two one");
    assert_eq!(reverse_order("  one   two "), "two one");
    assert_eq!(reverse_order(""), "");
}
