//! Lookups in id maps.

use super::is_mapped;

#[test]
fn only_numbers_in_a_map_are_known() {
    let map = "         0       1000          1\n         1     100000      65536\n";
    assert_eq!([0, 1, 65536, 65537].map(|number| is_mapped(map, number)), [true, true, true, false]);
    assert!(is_mapped("0 0 4294967295\n", 65534));
    assert!(!is_mapped("", 0));
}
