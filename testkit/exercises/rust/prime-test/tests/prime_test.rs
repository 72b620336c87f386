use prime_test::{is_prime, primes_below};

#[test]
fn small_numbers() {
    let found: Vec<u64> = (0..20).filter(|n| is_prime(*n)).collect();
    assert_eq!(found, [2, 3, 5, 7, 11, 13, 17, 19]);
}

#[test]
fn squares_of_primes() {
    for n in [4, 9, 25, 49, 121, 169, 994_009] {
        assert!(!is_prime(n), "{n}");
    }
}

#[test]
fn large_numbers() {
    assert!(is_prime(2_147_483_647));
    assert!(!is_prime(2_147_483_647 * 3));
    assert!(is_prime(10_000_000_019));
}

#[test]
fn lists() {
    assert_eq!(primes_below(11), [2, 3, 5, 7]);
    assert_eq!(primes_below(12), [2, 3, 5, 7, 11]);
    assert_eq!(primes_below(2), []);
    assert_eq!(primes_below(0), []);
}
