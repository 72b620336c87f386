mod money;

pub use money::Money;

/// Divides an amount into equal shares.
pub fn split(total: Money, people: usize) -> Option<Vec<Money>> {
    if people == 0 {
        return None;
    }
    let share = total.0.div_euclid(people as i64);
    let larger = total.0.rem_euclid(people as i64);
    Some((0..people as i64).map(|index| Money(share + i64::from(index < larger))).collect())
}

/// Returns what each person still has to pay.
pub fn settle(payments: &[(&str, Money)]) -> Vec<(String, Money)> {
    let total = payments.iter().map(|(_, paid)| paid.0).sum();
    let shares = split(Money(total), payments.len()).unwrap_or_default();
    let pairs = payments.iter().zip(shares);
    pairs.map(|((name, paid), share)| (name.to_string(), Money(share.0 - paid.0))).collect()
}
