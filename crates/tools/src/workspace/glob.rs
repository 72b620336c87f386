//! File name patterns as models write them: a pattern without a slash matches file names at any depth, one
//! with a slash matches paths.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

pub(crate) struct NamePattern {
    globs: GlobSet,
    /// Whether the pattern is matched against the file name only.
    by_name: bool,
    /// Whether the pattern names hidden files, which are otherwise skipped.
    pub(crate) hidden: bool,
    /// Whether the pattern matches directories instead of files.
    pub(crate) directories: bool,
}

impl NamePattern {
    /// Parses a pattern. `a,b` and `{a,b}` match either alternative.
    pub(crate) fn parse(pattern: &str, root: &Path) -> Result<Self, String> {
        let trimmed = pattern.trim();
        let inside = Path::new(trimmed).strip_prefix(root).ok().and_then(Path::to_str).unwrap_or(trimmed);
        let inside = inside.trim_start_matches("./");
        let directories = inside.ends_with('/');
        let inside = inside.trim_end_matches('/');
        if inside.is_empty() {
            return Err(format!(
                "`{pattern}` matches nothing. Use a pattern such as `*.rs` or `src/**/*.py`."
            ));
        }
        let mut set = GlobSetBuilder::new();
        for part in split_outside_braces(inside) {
            let glob = GlobBuilder::new(part).literal_separator(true).build().map_err(|error| {
                format!(
                    "`{pattern}` is not a valid pattern: {}. Use one such as `*.rs` or `src/**/*.py`.",
                    error.kind()
                )
            })?;
            set.add(glob);
        }
        let globs = set.build().map_err(|error| format!("`{pattern}` is not a valid pattern: {error}."))?;
        let hidden = inside.split(['/', ',', '{']).any(|part| part.starts_with('.'));
        Ok(Self { globs, by_name: !inside.contains('/'), hidden, directories })
    }

    /// Matches a file by its name or by any of `paths`, its path relative to different directories.
    pub(crate) fn matches(&self, name: &std::ffi::OsStr, paths: [&Path; 2]) -> bool {
        if self.by_name {
            self.globs.is_match(name)
        } else {
            paths.iter().any(|path| self.globs.is_match(path))
        }
    }
}

/// Filters the paths by a pattern; an invalid pattern matches nothing.
pub fn matching<'a>(pattern: &str, paths: &'a [String]) -> impl Iterator<Item = &'a String> {
    let pattern = NamePattern::parse(pattern, Path::new("/")).ok();
    paths.iter().filter(move |path| {
        let path = Path::new(path.as_str());
        let name = path.file_name().unwrap_or_default();
        pattern.as_ref().is_some_and(|pattern| pattern.matches(name, [path, path]))
    })
}

fn split_outside_braces(pattern: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0usize);
    for (at, character) in pattern.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(pattern[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(pattern[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}
