use base_digits::{from_digits, to_digits, Fault};

#[test]
fn writing() {
    assert_eq!(to_digits(10, 2).unwrap(), "1010");
    assert_eq!(to_digits(255, 16).unwrap(), "ff");
    assert_eq!(to_digits(0, 7).unwrap(), "0");
    assert_eq!(to_digits(35, 36).unwrap(), "z");
    assert_eq!(to_digits(u64::MAX, 16).unwrap(), "ffffffffffffffff");
}

#[test]
fn reading() {
    assert_eq!(from_digits("1010", 2), Ok(10));
    assert_eq!(from_digits("fF", 16), Ok(255));
    assert_eq!(from_digits("000", 3), Ok(0));
    assert_eq!(from_digits("zz", 36), Ok(1295));
}

#[test]
fn both_directions() {
    for base in 2..=36 {
        for number in [0, 1, 35, 36, 37, 123_456_789, u64::MAX] {
            assert_eq!(from_digits(&to_digits(number, base).unwrap(), base), Ok(number));
        }
    }
}

#[test]
fn unknown_bases() {
    for base in [0, 1, 37] {
        assert_eq!(to_digits(5, base), Err(Fault::Base));
        assert_eq!(from_digits("1", base), Err(Fault::Base));
    }
}

#[test]
fn faulty_texts() {
    assert_eq!(from_digits("", 10), Err(Fault::Empty));
    assert_eq!(from_digits("12", 2), Err(Fault::Digit('2')));
    assert_eq!(from_digits("-1", 10), Err(Fault::Digit('-')));
    assert_eq!(from_digits("10000000000000000", 16), Err(Fault::TooLarge));
    assert_eq!(from_digits("18446744073709551616", 10), Err(Fault::TooLarge));
}
