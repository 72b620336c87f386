//! The exact McNemar test: of the cases where two methods differ, does one win more often than a coin would?

/// Two-sided p value for `only_a` cases that only A passed and `only_b` that only B passed.
pub fn mcnemar(only_a: u64, only_b: u64) -> f64 {
    let n = only_a + only_b;
    // Logarithms, because 0.5^n underflows beyond a thousand discordant cases.
    let mut term = n as f64 * 0.5_f64.ln();
    let mut terms = vec![term];
    for k in 1..=only_a.min(only_b) {
        term += ((n - k + 1) as f64).ln() - (k as f64).ln();
        terms.push(term);
    }
    let tail: f64 = terms.into_iter().rev().map(f64::exp).sum();
    (2.0 * tail).min(1.0)
}
