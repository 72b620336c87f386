/// The texts have different numbers of letters.
#[derive(Debug, PartialEq, Eq)]
pub struct DifferentLength {
    pub left: usize,
    pub right: usize,
}

/// Counts the places at which the texts differ.
pub fn distance(a: &str, b: &str) -> Result<usize, DifferentLength> {
    let (left, right) = (a.chars().count(), b.chars().count());
    if left != right {
        return Err(DifferentLength { left, right });
    }
    Ok(a.chars().zip(b.chars()).filter(|(a, b)| a != b).count())
}

/// Finds the candidate with the smallest distance.
pub fn closest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let known = candidates.iter().filter_map(|candidate| Some((distance(word, candidate).ok()?, *candidate)));
    known.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}
