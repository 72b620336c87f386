use letter_distance::{closest, distance, DifferentLength};

#[test]
fn equal_texts() {
    assert_eq!(distance("", ""), Ok(0));
    assert_eq!(distance("house", "house"), Ok(0));
}

#[test]
fn different_letters() {
    assert_eq!(distance("house", "mouse"), Ok(1));
    assert_eq!(distance("abc", "cab"), Ok(3));
    assert_eq!(distance("a", "A"), Ok(1));
}

#[test]
fn letters_are_not_bytes() {
    assert_eq!(distance("käse", "kase"), Ok(1));
    assert_eq!(distance("日本", "本日"), Ok(2));
}

#[test]
fn different_lengths() {
    assert_eq!(distance("a", "abc"), Err(DifferentLength { left: 1, right: 3 }));
    assert_eq!(distance("äöü", ""), Err(DifferentLength { left: 3, right: 0 }));
}

#[test]
fn the_closest_candidate() {
    assert_eq!(closest("house", &["tower", "horse", "mouse", "hut"]), Some("horse"));
    assert_eq!(closest("cat", &["dogs", "ox", "rat"]), Some("rat"));
    assert_eq!(closest("cat", &["xyz", "cat", "bat"]), Some("cat"));
    assert_eq!(closest("cat", &["horse"]), None);
    assert_eq!(closest("cat", &[]), None);
}
