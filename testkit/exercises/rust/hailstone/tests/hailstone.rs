use hailstone::{highest, steps};

#[test]
fn small_numbers() {
    assert_eq!(steps(1), Some(0));
    assert_eq!(steps(2), Some(1));
    assert_eq!(steps(6), Some(8));
    assert_eq!(steps(27), Some(111));
}

#[test]
fn large_numbers() {
    assert_eq!(steps(1_000_000), Some(152));
    assert_eq!(steps(113_383), Some(247));
    assert_eq!(steps(1 << 40), Some(40));
}

#[test]
fn zero() {
    assert_eq!(steps(0), None);
    assert_eq!(highest(0), None);
}

#[test]
fn numbers_that_grow_too_large() {
    assert_eq!(steps(u64::MAX), None);
    assert_eq!(highest(u64::MAX), None);
}

#[test]
fn the_highest_number() {
    assert_eq!(highest(1), Some(1));
    assert_eq!(highest(8), Some(8));
    assert_eq!(highest(6), Some(16));
    assert_eq!(highest(27), Some(9232));
    assert_eq!(highest(113_383), Some(2_482_111_348));
}
