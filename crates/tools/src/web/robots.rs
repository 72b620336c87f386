//! `robots.txt` as RFC 9309 defines it: the rules of the group for this program, or else for everybody.

use reqwest::Url;

/// Name under which a site can address this program.
const AGENT: &str = "fusee";
/// Maximum number of rules that are kept.
const MAX_RULES: usize = 2000;
/// Maximum number of `*` in a rule; one with more never matches, because matching it could take long.
const MAX_STARS: usize = 8;

/// What a site allows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Robots(Vec<Rule>);

#[derive(Debug, PartialEq, Eq)]
struct Rule {
    allow: bool,
    /// Beginning of the paths it is about; `*` stands for anything, and `$` at its end for the end.
    path: String,
}

impl Robots {
    /// Everything is allowed.
    pub(super) fn everything() -> Self {
        Self(Vec::new())
    }

    /// Nothing is allowed.
    pub(super) fn nothing() -> Self {
        Self(vec![Rule { allow: false, path: "/".to_owned() }])
    }

    pub(super) fn read(text: &str) -> Self {
        let (mut own, mut general) = (None::<Vec<Rule>>, Vec::new());
        // The groups that the current lines belong to, and whether rules have begun.
        let (mut for_us, mut for_all, mut in_rules) = (false, false, true);
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((field, value)) = line.split_once(':') else { continue };
            let (field, value) = (field.trim().to_ascii_lowercase(), value.trim());
            match field.as_str() {
                "user-agent" => {
                    if in_rules {
                        (for_us, for_all, in_rules) = (false, false, false);
                    }
                    for_us |= value.to_ascii_lowercase().split('/').next() == Some(AGENT);
                    for_all |= value == "*";
                    if for_us {
                        own.get_or_insert_default();
                    }
                }
                "allow" | "disallow" => {
                    in_rules = true;
                    // A rule without a path says nothing.
                    if value.is_empty() {
                        continue;
                    }
                    let rule = || Rule { allow: field == "allow", path: value.to_owned() };
                    if let Some(own) = own.as_mut().filter(|own| for_us && own.len() < MAX_RULES) {
                        own.push(rule());
                    }
                    if for_all && general.len() < MAX_RULES {
                        general.push(rule());
                    }
                }
                _ => {}
            }
        }
        Self(own.unwrap_or(general))
    }

    /// Whether a page may be fetched: the longest rule that matches decides, and of two that are equally long the one
    /// that allows.
    pub(super) fn allow(&self, url: &Url) -> bool {
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let fitting = self.0.iter().filter(|rule| matches(&rule.path, &path));
        fitting.max_by_key(|rule| (rule.path.len(), rule.allow)).is_none_or(|rule| rule.allow)
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, to_end) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let parts: Vec<&str> = pattern.split('*').collect();
    if parts.len() > MAX_STARS + 1 {
        return false;
    }
    let Some(mut rest) = path.strip_prefix(parts[0]) else { return false };
    let Some((last, middle)) = parts[1..].split_last() else { return !to_end || rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    if to_end { rest.ends_with(last) } else { rest.contains(last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(text: &str, path: &str) -> bool {
        Robots::read(text).allow(&Url::parse("https://a.org").unwrap().join(path).unwrap())
    }

    #[test]
    fn the_longest_rule_decides() {
        let text = "User-agent: *\nDisallow: /p\nAllow: /public\nDisallow: /public/not\n";
        assert!(allows(text, "/"));
        assert!(!allows(text, "/private"));
        assert!(allows(text, "/public/x"));
        assert!(!allows(text, "/public/not/x"));
        assert!(allows("User-agent: *\nDisallow: /a\nAllow: /a\n", "/a"));
        assert!(allows("User-agent: *\nDisallow:\n", "/a"));
        assert!(allows("", "/a"));
    }

    #[test]
    fn the_group_of_this_program_replaces_the_general_one() {
        let text =
            "User-agent: *\nDisallow: /\n\nUser-agent: Fusee/1.0\nUser-agent: other\nDisallow: /no # why\n";
        assert!(allows(text, "/yes"));
        assert!(!allows(text, "/no"));
        assert!(!allows("User-agent: other\nAllow: /\n\nUser-agent: *\nDisallow: /\n", "/a"));
    }

    #[test]
    fn wildcards_stand_for_anything() {
        let text = "User-agent: *\nDisallow: /*.pdf$\nDisallow: /a/*/b\nDisallow: /*?s=\n";
        assert!(!allows(text, "/x/y.pdf"));
        assert!(allows(text, "/x/y.pdf.html"));
        assert!(!allows(text, "/a/1/2/bcd"));
        assert!(allows(text, "/a/b"));
        assert!(!allows(text, "/q?s=1"));
        assert!(!matches(&"*a".repeat(20), &"a".repeat(100)));
    }
}
