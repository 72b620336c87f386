mod money;

pub use money::Money;

/// Divides an amount into equal shares.
pub fn split(total: Money, people: usize) -> Option<Vec<Money>> {
    Some(vec![Money(total.0 / people as i64); people])
}
