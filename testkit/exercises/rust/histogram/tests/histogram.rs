use histogram::histogram;

#[test]
fn values_are_counted() {
    let values = [0.5, 1.0, 1.5, 2.5, 3.9];
    assert_eq!(histogram(&values, 0.0, 4.0, 4), Some(vec![1, 2, 1, 1]));
    assert_eq!(histogram(&values, 0.0, 4.0, 1), Some(vec![5]));
}

#[test]
fn both_ends() {
    assert_eq!(histogram(&[0.0, 10.0], 0.0, 10.0, 5), Some(vec![1, 0, 0, 0, 1]));
    assert_eq!(histogram(&[-1.0, 1.0], -1.0, 1.0, 2), Some(vec![1, 1]));
}

#[test]
fn values_outside_are_not_counted() {
    assert_eq!(histogram(&[-0.1, -5.0, 4.1, 99.0, 2.0], 0.0, 4.0, 2), Some(vec![0, 1]));
}

#[test]
fn no_values() {
    assert_eq!(histogram(&[], 0.0, 1.0, 3), Some(vec![0, 0, 0]));
}

#[test]
fn impossible_intervals() {
    assert_eq!(histogram(&[1.0], 0.0, 2.0, 0), None);
    assert_eq!(histogram(&[1.0], 2.0, 2.0, 3), None);
    assert_eq!(histogram(&[1.0], 3.0, 2.0, 3), None);
}
