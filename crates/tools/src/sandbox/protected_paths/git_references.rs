//! Files in the workspace that the settings of its repository execute or include: `include.path`,
//! `core.hooksPath`, and programs that settings name.

use std::path::{Component, Path, PathBuf};

use super::settings_backup::SettingsBackup;
use super::submodules;
use crate::sandbox::policy::CreatedPathAction;
use crate::workspace::bounded_read;

/// Maximum size of a settings file.
const MAX_BYTES: u64 = 256 * 1024;

/// Maximum number of settings files that include each other.
const MAX_FILES: usize = 16;

/// Variables whose value is a program, in any section.
const PROGRAMS: [&str; 19] = [
    "fsmonitor",
    "pager",
    "editor",
    "sshcommand",
    "askpass",
    "gitproxy",
    "command",
    "textconv",
    "external",
    "clean",
    "smudge",
    "process",
    "driver",
    "helper",
    "program",
    "cmd",
    "uploadpack",
    "receivepack",
    "sendemail",
];

/// The referenced files as they are now. Only settings that the user made count: they are read before a
/// command, and commands cannot change them.
pub(super) fn backup(root: &Path) -> SettingsBackup {
    let paths = referenced(root);
    let paths: Vec<(&Path, CreatedPathAction)> =
        paths.iter().map(|(path, on_create)| (path.as_path(), *on_create)).collect();
    SettingsBackup::create(&paths).unwrap_or_default()
}

/// The referenced paths in the workspace.
fn referenced(root: &Path) -> Vec<(PathBuf, CreatedPathAction)> {
    let mut found = Vec::new();
    let Some(folder) = submodules::git_folder(root) else { return found };
    let mut ahead = vec![folder.join("config"), folder.join("config.worktree")];
    let mut seen = 0;
    while let Some(file) = ahead.pop() {
        seen += 1;
        let Ok(text) = bounded_read::read(&file, MAX_BYTES) else { continue };
        if seen > MAX_FILES {
            break;
        }
        for Setting { section, name, value } in settings(&String::from_utf8_lossy(&text)) {
            let from_file = file.parent().map(|folder| folder.join(&value));
            match (section.as_str(), name.as_str()) {
                ("include" | "includeif", "path") => {
                    let included = from_file.and_then(|path| inside(root, &path));
                    ahead.extend(included.clone());
                    found.extend(included.map(|path| (path, CreatedPathAction::SetAside)));
                }
                ("core", "hookspath") => {
                    let hooks = inside(root, &root.join(&value));
                    // Husky keeps the hooks beside the directory that git runs them from.
                    let beside =
                        hooks.iter().filter(|path| path.ends_with("_")).filter_map(|path| path.parent());
                    let beside: Vec<PathBuf> =
                        beside.filter(|path| *path != root).map(Path::to_owned).collect();
                    found.extend(
                        hooks.into_iter().chain(beside).map(|path| (path, CreatedPathAction::WithoutHooks)),
                    );
                }
                ("alias", _) => found.extend(programs(root, value.strip_prefix('!').unwrap_or(""))),
                (_, name) if PROGRAMS.contains(&name) => found.extend(programs(root, &value)),
                _ => {}
            }
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found.dedup();
    found
}

/// The words of a command line that are files of the workspace.
fn programs(root: &Path, line: &str) -> Vec<(PathBuf, CreatedPathAction)> {
    let words = line.split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ';' | '&' | '|'));
    let files = words.filter(|word| !word.is_empty()).filter_map(|word| inside(root, &root.join(word)));
    files.filter(|path| path.is_file()).map(|path| (path, CreatedPathAction::SetAside)).collect()
}

/// The path without `.` and `..`, if it is inside the workspace and not in its own repository.
fn inside(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    (plain.starts_with(root) && plain != root && !plain.starts_with(root.join(".git"))).then_some(plain)
}

#[derive(Debug, PartialEq, Eq)]
struct Setting {
    section: String,
    name: String,
    value: String,
}

/// The settings of a file; section and name in lower case, without the subsection.
fn settings(text: &str) -> Vec<Setting> {
    let joined = text.replace("\\\r\n", "").replace("\\\n", "");
    let (mut found, mut section) = (Vec::new(), String::new());
    for line in joined.lines().map(str::trim) {
        let mut rest = line;
        if let Some(header) = line.strip_prefix('[') {
            let name = header.split(|c: char| c.is_whitespace() || matches!(c, '.' | ']')).next();
            section = name.unwrap_or_default().to_ascii_lowercase();
            // A setting may follow on the same line.
            rest = header.rsplit_once(']').map_or("", |(_, rest)| rest).trim();
        }
        let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
        if !rest.starts_with(['#', ';']) && !name.trim().is_empty() {
            let name = name.trim().to_ascii_lowercase();
            found.push(Setting { section: section.clone(), name, value: unquoted(value.trim()) });
        }
    }
    found
}

/// A value without its quotes, escapes and comment.
fn unquoted(value: &str) -> String {
    let (mut plain, mut quoted, mut characters) = (String::new(), false, value.chars());
    while let Some(next) = characters.next() {
        match next {
            '"' => quoted = !quoted,
            '\\' => plain.extend(characters.next()),
            '#' | ';' if !quoted => break,
            other => plain.push(other),
        }
    }
    plain.trim_end().to_owned()
}

#[cfg(test)]
mod tests;
