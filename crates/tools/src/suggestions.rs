//! Suggests similar names for an unknown tool, parameter or path.

/// Returns up to `most` of `known` that are similar to `wrong`, best first, ties by name.
pub(crate) fn names<'a>(wrong: &str, known: impl Iterator<Item = &'a str>, most: usize) -> Vec<String> {
    let wrong = wrong.to_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .filter_map(|name| {
            let score = similarity(&wrong, &name.to_lowercase());
            (score >= 0.6).then_some((score, name))
        })
        .collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(right.1)));
    scored.truncate(most);
    scored.into_iter().map(|(_, name)| name.to_owned()).collect()
}

/// Similarity from 0 to 1. Jaro-Winkler alone misses a name contained in the other (`grep_search`, `search`).
fn similarity(left: &str, right: &str) -> f64 {
    // Jaro-Winkler underrates names whose first letters are swapped.
    let whole = strsim::jaro_winkler(left, right).max(strsim::normalized_damerau_levenshtein(left, right));
    let contained = left.len().min(right.len()) >= 3 && (left.contains(right) || right.contains(left));
    if contained { whole.max(0.85) } else { whole }
}
