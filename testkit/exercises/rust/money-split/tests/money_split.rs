use money_split::{settle, split, Money};

#[test]
fn reading() {
    assert_eq!(Money::parse("12.34"), Some(Money(1234)));
    assert_eq!(Money::parse("7"), Some(Money(700)));
    assert_eq!(Money::parse("-0.50"), Some(Money(-50)));
    for text in ["", "-", "1.2", "1.234", ".50", "1.", "a", "1,20", "--1", "+1", "1.-5"] {
        assert_eq!(Money::parse(text), None, "{text}");
    }
}

#[test]
fn writing() {
    for text in ["12.34", "7.00", "-0.50", "0.05", "-10.00"] {
        assert_eq!(Money::parse(text).unwrap().to_string(), text);
    }
}

fn shares(total: i64, people: usize) -> Option<Vec<i64>> {
    split(Money(total), people).map(|shares| shares.iter().map(|share| share.0).collect())
}

#[test]
fn splitting() {
    assert_eq!(shares(900, 3), Some(vec![300, 300, 300]));
    assert_eq!(shares(1000, 3), Some(vec![334, 333, 333]));
    assert_eq!(shares(5, 4), Some(vec![2, 1, 1, 1]));
    assert_eq!(shares(-1000, 3), Some(vec![-333, -333, -334]));
    assert_eq!(shares(0, 2), Some(vec![0, 0]));
    assert_eq!(shares(10, 0), None);
}

#[test]
fn settling() {
    let result = settle(&[("Ann", Money(1000)), ("Bob", Money(0)), ("Cid", Money(0))]);
    let expected = [("Ann", -666), ("Bob", 333), ("Cid", 333)].map(|(name, cents)| (name.to_string(), Money(cents)));
    assert_eq!(result, expected);
    assert!(settle(&[]).is_empty());
}
