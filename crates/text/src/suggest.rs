//! "Did you mean" suggestions for unknown names. Every unknown name in the product is reported through this
//! module.

#[cfg(test)]
mod tests;

/// Maximum number of suggestions.
const PROPOSALS: usize = 3;
/// Maximum length of a compared name, in characters: computing the distance takes time proportional to the
/// product of both lengths.
const MAX_LENGTH: usize = 128;

/// The candidates most similar to `name`, best first; at most three, and none if nothing is similar.
///
/// A candidate is similar if at most a third of its characters differ (a transposition counts once), or if it
/// is equal up to case and the separators `-`, `_`, `:` and `.`. `name` itself is never suggested.
pub fn nearest<'a, I>(name: &str, candidates: I) -> Vec<&'a str>
where
    I: IntoIterator<Item = &'a str>,
{
    let length = name.chars().count();
    if length == 0 || length > MAX_LENGTH {
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

/// "did you mean `a`, `b` or `c`?" for the nearest candidates, or `None` if nothing is similar.
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
    if other > MAX_LENGTH {
        return None;
    }
    let allowed = (length.max(other) / 3).max(1);
    if length.abs_diff(other) > allowed {
        return None;
    }
    let candidate = fold(candidate);
    let distance = strsim::damerau_levenshtein(folded, &candidate);
    // Any two one-letter names are one edit apart, so they must be equal after folding.
    let shares_a_letter = length.min(other) > 1 || distance == 0;
    (distance <= allowed && shares_a_letter).then_some(distance)
}

fn fold(name: &str) -> String {
    name.chars()
        .map(|c| if matches!(c, '_' | ':' | '.') { '-' } else { c })
        .flat_map(char::to_lowercase)
        .collect()
}
