//! What a session finds where it starts, looked at once and kept as a step: the place, and what the project itself has
//! to say to a model. `default.rs` makes a prompt of it.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::digest::workspace_digest;
use super::documents::{self, Document};
use super::overrides::{self, Override};

/// A project's instructions longer than this are cut, and the cut is marked.
const INSTRUCTIONS_BYTES: usize = 24 * 1024;

/// What names a branch is a line.
const HEAD_BYTES: u64 = 4 * 1024;

/// The world a session starts in, looked at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// The project's directory.
    pub directory: String,
    /// Operating system and processor.
    pub platform: String,
    /// The day, as the user's clock says.
    pub date: String,
    /// The git branch, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The text of AGENTS.md, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The project's skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Document>,
    /// What the project would rather say in places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// The project in a page, where a prompt shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What a person should know of these files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl Environment {
    /// Looks at it.
    pub fn look(directory: &Path, now_ms: i64) -> Self {
        let date = jiff::Timestamp::from_millisecond(now_ms)
            .map(|now| now.to_zoned(jiff::tz::TimeZone::UTC).date().to_string())
            .unwrap_or_default();
        let root = root(directory);
        let own = root.join(".fusee");
        let skills = documents::skills(&own.join("skills"), root);
        let (overrides, mut notices) = overrides::read(&own.join("prompts"), root);
        notices.extend(skills.notices);
        Self {
            directory: directory.display().to_string(),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            date,
            branch: branch(directory),
            instructions: instructions(directory, root),
            skills: skills.documents,
            overrides,
            digest: None,
            notices,
        }
    }

    /// The same with the project in a page, which is kept in a file where one is named.
    #[must_use]
    pub fn digested(self, directory: &Path, kept: Option<&Path>) -> Self {
        let digest = workspace_digest(directory, kept, self.branch.as_deref(), None);
        Self { digest: Some(digest), ..self }
    }

    /// The place, as a model is told it.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("- directory: {}\n- platform: {}\n", self.directory, self.platform);
        if let Some(branch) = &self.branch {
            text.push_str(&format!("- git branch: {branch}\n"));
        }
        text.push_str(&format!("- date: {}", self.date));
        text
    }
}

/// The first bytes of a file of the project. Nothing for a link that leads out of the project: a project is not to
/// send to a model what its user keeps elsewhere. Nothing either for what is no plain file.
pub(super) fn read_within(root: &Path, path: &Path, most: usize) -> Option<(String, Whole)> {
    let real = path.canonicalize().ok()?;
    if !real.starts_with(root.canonicalize().ok()?) || !real.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(real).ok()?.take(most as u64 + 1).read_to_end(&mut bytes).ok()?;
    let whole = if bytes.len() > most { Whole::Cut } else { Whole::All };
    bytes.truncate(most);
    let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
    Some((text.trim_start_matches('\u{feff}').to_owned(), whole))
}

/// Whether all of a file was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whole {
    All,
    Cut,
}

/// The project's root: the nearest ancestor with `.fusee` or `.git`, else the directory itself.
fn root(directory: &Path) -> &Path {
    let is_root = |path: &&Path| path.join(".fusee").is_dir() || path.join(".git").exists();
    directory.ancestors().find(is_root).unwrap_or(directory)
}

/// The branch that HEAD names, read without running git.
fn branch(directory: &Path) -> Option<String> {
    let git = directory.ancestors().map(|ancestor| ancestor.join(".git")).find(|path| path.exists())?;
    let head = fusee_tools::plain::read_text(&git.join("HEAD"), HEAD_BYTES).ok()?;
    let head = head.trim();
    Some(head.strip_prefix("ref: refs/heads/").map_or_else(|| head.chars().take(12).collect(), str::to_owned))
}

/// The text of the AGENTS.md files from the project's root down to the directory; the nearest one comes last.
fn instructions(directory: &Path, root: &Path) -> Option<String> {
    let mut files: Vec<PathBuf> = directory
        .ancestors()
        .take_while(|path| path.starts_with(root))
        .map(|path| path.join("AGENTS.md"))
        .collect();
    files.reverse();
    let (mut texts, mut room) = (Vec::new(), INSTRUCTIONS_BYTES);
    for file in files {
        let Some((mut text, whole)) = read_within(root, &file, room) else { continue };
        room = room.saturating_sub(text.len());
        if whole == Whole::Cut {
            let name = file.strip_prefix(directory).unwrap_or(&file);
            text.push_str(&format!("\n[cut here: read {} for the rest]", name.display()));
        }
        if !text.trim().is_empty() {
            texts.push(text.trim().to_owned());
        }
    }
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
