//! Which cases of a suite are run, and in which order.

use std::str::FromStr;

use super::Suite;
use crate::case::Case;

/// Chooses cases: filters first, then the order, the slice and the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Selection {
    /// Only these languages; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<String>,
    /// Only cases whose name or keywords contain one of these texts; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// Seed of a random order; by name without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shuffle: Option<u64>,
    /// Part of the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<Slice>,
    /// Maximum number of cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// A range of cases, counted from 0, without its end; written `FROM:TO` with either side optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Slice {
    /// First case.
    pub from: usize,
    /// End of the range, exclusive; `None` for the end of the list.
    pub to: Option<usize>,
}

impl FromStr for Slice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("`{text}` is not a slice; write FROM:TO, such as 0:10");
        let (from, to) = text.split_once(':').ok_or_else(wrong)?;
        let number = |text: &str| match text.trim() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| wrong()),
        };
        let slice = Self { from: number(from)?.unwrap_or(0), to: number(to)? };
        match slice.to {
            Some(to) if to < slice.from => Err(wrong()),
            _ => Ok(slice),
        }
    }
}

impl Selection {
    /// The chosen cases, in the order in which they are run.
    pub fn apply(&self, suite: &Suite) -> Vec<Case> {
        let wanted = |case: &&Case| {
            let language = self.languages.is_empty()
                || case
                    .language
                    .as_ref()
                    .is_some_and(|own| self.languages.iter().any(|wanted| wanted.eq_ignore_ascii_case(own)));
            let matches = |word: &String| {
                case.name.contains(word.as_str())
                    || case.keywords.iter().any(|own| own.contains(word.as_str()))
            };
            language && (self.keywords.is_empty() || self.keywords.iter().any(matches))
        };
        let mut cases: Vec<Case> = suite.cases.iter().filter(wanted).cloned().collect();
        if let Some(seed) = self.shuffle {
            fastrand::Rng::with_seed(seed).shuffle(&mut cases);
        }
        let slice = self.slice.unwrap_or_default();
        let to = slice.to.unwrap_or(usize::MAX).min(cases.len());
        let cases = cases.into_iter().take(to).skip(slice.from);
        cases.take(self.limit.unwrap_or(usize::MAX)).collect()
    }
}
