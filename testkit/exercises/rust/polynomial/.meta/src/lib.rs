use std::fmt;
use std::ops::{Add, Mul};

/// A polynomial with whole coefficients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polynomial {
    coefficients: Vec<i64>,
}

impl Polynomial {
    /// Creates a polynomial; the coefficient of the lowest power comes first.
    pub fn new(coefficients: &[i64]) -> Self {
        let length = coefficients.iter().rposition(|c| *c != 0).map_or(0, |last| last + 1);
        Polynomial { coefficients: coefficients[..length].to_vec() }
    }

    /// Returns the value at a place.
    pub fn at(&self, x: i64) -> i64 {
        self.coefficients.iter().rev().fold(0, |sum, coefficient| sum * x + coefficient)
    }

    /// Returns the highest power.
    pub fn degree(&self) -> Option<usize> {
        self.coefficients.len().checked_sub(1)
    }

    /// Returns the derivative.
    pub fn derivative(&self) -> Self {
        let terms = self.coefficients.iter().enumerate().skip(1);
        Polynomial::new(&terms.map(|(power, c)| power as i64 * c).collect::<Vec<_>>())
    }
}

impl Add for &Polynomial {
    type Output = Polynomial;

    fn add(self, other: &Polynomial) -> Polynomial {
        let mut sum = vec![0; self.coefficients.len().max(other.coefficients.len())];
        for polynomial in [self, other] {
            for (power, c) in polynomial.coefficients.iter().enumerate() {
                sum[power] += c;
            }
        }
        Polynomial::new(&sum)
    }
}

impl Mul for &Polynomial {
    type Output = Polynomial;

    fn mul(self, other: &Polynomial) -> Polynomial {
        let mut product = vec![0; self.coefficients.len() + other.coefficients.len()];
        for (i, a) in self.coefficients.iter().enumerate() {
            for (j, b) in other.coefficients.iter().enumerate() {
                product[i + j] += a * b;
            }
        }
        Polynomial::new(&product)
    }
}

impl fmt::Display for Polynomial {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut first = true;
        for (power, c) in self.coefficients.iter().enumerate().rev().filter(|(_, c)| **c != 0) {
            match (first, *c < 0) {
                (true, true) => write!(f, "-")?,
                (true, false) => {}
                (false, true) => write!(f, " - ")?,
                (false, false) => write!(f, " + ")?,
            }
            first = false;
            if c.abs() != 1 || power == 0 {
                write!(f, "{}", c.abs())?;
            }
            match power {
                0 => {}
                1 => write!(f, "x")?,
                _ => write!(f, "x^{power}")?,
            }
        }
        if first { write!(f, "0") } else { Ok(()) }
    }
}
