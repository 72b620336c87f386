/// A polynomial with whole coefficients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polynomial {
    coefficients: Vec<i64>,
}

impl Polynomial {
    /// Creates a polynomial; the coefficient of the lowest power comes first.
    pub fn new(coefficients: &[i64]) -> Self {
        Polynomial { coefficients: coefficients.to_vec() }
    }

    /// Returns the value at a place.
    pub fn at(&self, x: i64) -> i64 {
        self.coefficients.iter().rev().fold(0, |sum, coefficient| sum * x + coefficient)
    }
}
