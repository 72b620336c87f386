/// The texts have different numbers of letters.
#[derive(Debug, PartialEq, Eq)]
pub struct DifferentLength {
    pub left: usize,
    pub right: usize,
}

/// Counts the places at which the texts differ.
pub fn distance(a: &str, b: &str) -> Result<usize, DifferentLength> {
    todo!()
}

/// Finds the candidate with the smallest distance.
pub fn closest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    todo!()
}
