/// An amount in cents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money(pub i64);
