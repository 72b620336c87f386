//! Success in `k` attempts, estimated without bias from `n >= k` attempts of which `c` passed.

/// Probability that at least one of `k` attempts passes: `1 - C(n-c, k) / C(n, k)`. `None` if there are fewer than
/// `k` attempts.
pub fn pass_at_k(n: u64, c: u64, k: u64) -> Option<f64> {
    none_of(n, n.checked_sub(c)?, k).map(|none| 1.0 - none)
}

/// Probability that all of `k` attempts pass: `C(c, k) / C(n, k)`. `None` if there are fewer than `k` attempts.
pub fn pass_hat_k(n: u64, c: u64, k: u64) -> Option<f64> {
    if c > n {
        return None;
    }
    none_of(n, c, k)
}

/// `C(of, k) / C(n, k)` as a product of ratios, which neither overflows nor cancels.
fn none_of(n: u64, of: u64, k: u64) -> Option<f64> {
    if k == 0 || k > n {
        return None;
    }
    if of < k {
        return Some(0.0);
    }
    Some((0..k).map(|i| (of - i) as f64 / (n - i) as f64).product())
}
