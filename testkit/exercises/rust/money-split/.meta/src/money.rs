use std::fmt;

/// An amount in cents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money(pub i64);

impl Money {
    /// Reads an amount such as `12.34`.
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let (whole, cents) = digits.split_once('.').unwrap_or((digits, "00"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_number(whole) || !is_number(cents) || cents.len() != 2 {
            return None;
        }
        let whole: i64 = whole.parse().ok()?;
        let cents: i64 = cents.parse().ok()?;
        Some(Money(sign * (whole * 100 + cents)))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}.{:02}", self.0.abs() / 100, self.0.abs() % 100)
    }
}
