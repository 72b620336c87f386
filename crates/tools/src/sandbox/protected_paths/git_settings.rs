//! Which settings a repository may contain that a command created: those that name neither a program nor a
//! file.

/// Settings that a repository created by a command may contain: none of them names a program or a file.
const SAFE_SETTINGS: [(&str, &[&str]); 6] = [
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
        ],
    ),
    ("user", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("remote", &["url", "fetch"]),
    ("branch", &["remote", "merge", "rebase"]),
    ("extensions", &["objectformat", "refstorage"]),
];

/// The settings that `git init` writes.
pub(super) const PLAIN_SETTINGS: &str =
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";

/// Whether a settings file contains nothing else.
pub fn has_only_safe_settings(text: &[u8]) -> bool {
    let mut section: Option<&[&str]> = None;
    text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).all(|line| match line.first() {
        None | Some(b'#' | b';') => true,
        Some(b'[') => {
            // Nothing may follow a section header on its line: git would parse it as a setting.
            let Some(header) = line.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")) else {
                return false;
            };
            let name =
                header.split(|byte| byte.is_ascii_whitespace() || *byte == b'.').next().unwrap_or_default();
            section = SAFE_SETTINGS
                .iter()
                .find(|(tame, _)| tame.as_bytes().eq_ignore_ascii_case(name))
                .map(|(_, names)| *names);
            section.is_some() && !header.contains(&b']')
        }
        Some(_) => {
            let name = line.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
            let known =
                |names: &[&str]| names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name));
            section.is_some_and(known) && !line.ends_with(b"\\")
        }
    })
}

#[cfg(test)]
mod tests;
