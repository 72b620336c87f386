//! Near names: which known name was probably meant. Every unknown name in the product is reported through this.

#[cfg(test)]
mod tests;

/// At most this many names are proposed.
const PROPOSALS: usize = 3;
/// Longer words are not compared: the distance takes the product of both lengths.
const LONGEST: usize = 128;

/// The candidates nearest to `name`, best first, at most three, none if nothing is near.
///
/// Near means at most a third of the characters wrong (transpositions count once), or the same name up to case and the
/// separators `-`, `_`, `:` and `.`; `name` itself is never proposed.
pub fn nearest<'a, I>(name: &str, candidates: I) -> Vec<&'a str>
where
    I: IntoIterator<Item = &'a str>,
{
    let length = name.chars().count();
    if length == 0 || length > LONGEST {
        return Vec::new();
    }
    let folded = fold(name);
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|candidate| *candidate != name)
        .filter_map(|candidate| distance(&folded, length, candidate).map(|distance| (distance, candidate)))
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(PROPOSALS).map(|(_, candidate)| candidate).collect()
}

/// "did you mean `a`, `b` or `c`?" for the nearest candidates, if any is near.
pub fn did_you_mean<'a, I>(name: &str, candidates: I) -> Option<String>
where
    I: IntoIterator<Item = &'a str>,
{
    let quoted: Vec<String> = nearest(name, candidates).iter().map(|near| format!("`{near}`")).collect();
    let (last, rest) = quoted.split_last()?;
    Some(match rest {
        [] => format!("did you mean {last}?"),
        _ => format!("did you mean {} or {last}?", rest.join(", ")),
    })
}

fn distance(folded: &str, length: usize, candidate: &str) -> Option<usize> {
    let other = candidate.chars().count();
    if other > LONGEST {
        return None;
    }
    let allowed = (length.max(other) / 3).max(1);
    if length.abs_diff(other) > allowed {
        return None;
    }
    let candidate = fold(candidate);
    let distance = strsim::damerau_levenshtein(folded, &candidate);
    // A one-letter name is one letter away from every other.
    let shares_a_letter = length.min(other) > 1 || distance == 0;
    (distance <= allowed && shares_a_letter).then_some(distance)
}

fn fold(name: &str) -> String {
    name.chars()
        .map(|c| if matches!(c, '_' | ':' | '.') { '-' } else { c })
        .flat_map(char::to_lowercase)
        .collect()
}
