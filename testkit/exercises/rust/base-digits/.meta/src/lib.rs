/// Why a conversion failed.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    Base,
    Empty,
    Digit(char),
    TooLarge,
}

/// Writes a number in another base.
pub fn to_digits(number: u64, base: u32) -> Result<String, Fault> {
    if !(2..=36).contains(&base) {
        return Err(Fault::Base);
    }
    let mut digits = Vec::new();
    let mut rest = number;
    loop {
        digits.push(char::from_digit((rest % u64::from(base)) as u32, base).unwrap());
        rest /= u64::from(base);
        if rest == 0 {
            return Ok(digits.into_iter().rev().collect());
        }
    }
}

/// Reads a number in another base.
pub fn from_digits(text: &str, base: u32) -> Result<u64, Fault> {
    if !(2..=36).contains(&base) {
        return Err(Fault::Base);
    }
    if text.is_empty() {
        return Err(Fault::Empty);
    }
    let mut number = 0u64;
    for character in text.chars() {
        let digit = character.to_digit(base).ok_or(Fault::Digit(character))?;
        number = number
            .checked_mul(u64::from(base))
            .and_then(|number| number.checked_add(u64::from(digit)))
            .ok_or(Fault::TooLarge)?;
    }
    Ok(number)
}
