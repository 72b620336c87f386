/// Reports whether a number is prime.
pub fn is_prime(n: u64) -> bool {
    let mut divisor = 2;
    while divisor * divisor < n {
        if n % divisor == 0 {
            return false;
        }
        divisor += 1;
    }
    true
}

/// Lists the primes less than the limit.
pub fn primes_below(limit: u64) -> Vec<u64> {
    (1..=limit).filter(|n| is_prime(*n)).collect()
}
