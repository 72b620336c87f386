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
    unimplemented!()
}

/// Reads a number in another base.
pub fn from_digits(text: &str, base: u32) -> Result<u64, Fault> {
    unimplemented!()
}
