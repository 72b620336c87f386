//! The environment a session starts in, read once and journaled as a step: directory, platform, and the
//! project's own texts for the model. `default.rs` builds a prompt from it.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::digest::workspace_digest;
use super::documents::{self, Document};
use super::overrides::{self, SectionOverride};

/// Longer project instructions are truncated, with a marker.
const INSTRUCTIONS_BYTES: usize = 24 * 1024;

/// Maximum size of the git HEAD file, which holds one line.
const HEAD_BYTES: u64 = 4 * 1024;

/// Snapshot of the environment at the start of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentSnapshot {
    /// Working directory.
    pub directory: String,
    /// Operating system and CPU architecture.
    pub platform: String,
    /// Current date (UTC).
    pub date: String,
    /// Git branch, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Text of the applicable AGENTS.md files, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Skills of the project.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Document>,
    /// Prompt sections that the project overrides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<SectionOverride>,
    /// One-page digest of the project, if the prompt shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Notices for the user about these files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl EnvironmentSnapshot {
    /// Reads the environment of a directory.
    pub fn capture(directory: &Path, now_ms: i64) -> Self {
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

    /// Names the directory by the path at which commands see it.
    #[must_use]
    pub(crate) fn shown_at(self, directory: &Path) -> Self {
        Self { directory: directory.display().to_string(), ..self }
    }

    /// Adds the project digest, cached in the file `kept` if one is given.
    #[must_use]
    pub fn with_digest(self, directory: &Path, kept: Option<&Path>) -> Self {
        let digest = workspace_digest(directory, kept, self.branch.as_deref(), None);
        Self { digest: Some(digest), ..self }
    }

    /// Renders directory, platform, branch and date for the model.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("- directory: {}\n- platform: {}\n", self.directory, self.platform);
        if let Some(branch) = &self.branch {
            text.push_str(&format!("- git branch: {branch}\n"));
        }
        text.push_str(&format!("- date: {}", self.date));
        text
    }
}

/// Reads the head of a project file. Returns `None` for a link that leads out of the project, because a
/// project must not send the user's other files to a model, and for anything that is not a regular file.
pub(super) fn read_within(root: &Path, path: &Path, most: usize) -> Option<(String, ReadExtent)> {
    let real = path.canonicalize().ok()?;
    if !real.starts_with(root.canonicalize().ok()?) || !real.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(real).ok()?.take(most as u64 + 1).read_to_end(&mut bytes).ok()?;
    let whole = if bytes.len() > most { ReadExtent::Cut } else { ReadExtent::All };
    bytes.truncate(most);
    let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
    Some((text.trim_start_matches('\u{feff}').to_owned(), whole))
}

/// Whether a file was read completely or truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadExtent {
    All,
    Cut,
}

/// Returns the project root: the nearest ancestor with `.fusee` or `.git`, else the directory itself.
fn root(directory: &Path) -> &Path {
    let is_root = |path: &&Path| path.join(".fusee").is_dir() || path.join(".git").exists();
    directory.ancestors().find(is_root).unwrap_or(directory)
}

/// Returns the branch that HEAD names, without running git.
fn branch(directory: &Path) -> Option<String> {
    let git = directory.ancestors().map(|ancestor| ancestor.join(".git")).find(|path| path.exists())?;
    let head = fusee_tools::workspace::bounded_read::read_text(&git.join("HEAD"), HEAD_BYTES).ok()?;
    let head = head.trim();
    Some(head.strip_prefix("ref: refs/heads/").map_or_else(|| head.chars().take(12).collect(), str::to_owned))
}

/// Joins the AGENTS.md files from the project root down to the directory; the nearest comes last.
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
        if whole == ReadExtent::Cut {
            let name = file.strip_prefix(directory).unwrap_or(&file);
            text.push_str(&format!("\n[cut here: read {} for the rest]", name.display()));
        }
        if !text.trim().is_empty() {
            texts.push(text.trim().to_owned());
        }
    }
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
