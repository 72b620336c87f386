//! The prompt of a plain run: a text file of the product, the environment, and the project's own instructions.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// The default prompt's fixed part.
const DEFAULT: &str = include_str!("default.md");

/// What is added in review mode.
const REVIEW: &str = include_str!("review.md");

/// A project's instructions longer than this are cut, and the cut is marked.
const INSTRUCTIONS_BYTES: usize = 24 * 1024;

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
}

impl Environment {
    /// Looks at it.
    pub fn look(directory: &Path, now_ms: i64) -> Self {
        let date = jiff::Timestamp::from_millisecond(now_ms)
            .map(|now| now.to_zoned(jiff::tz::TimeZone::UTC).date().to_string())
            .unwrap_or_default();
        Self {
            directory: directory.display().to_string(),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            date,
            branch: branch(directory),
            instructions: instructions(directory),
        }
    }
}

/// The system prompt of a plain run.
pub fn default_system(environment: &Environment, review: bool) -> String {
    let mut text = DEFAULT.trim_end().to_owned();
    if review {
        text.push_str("\n\n");
        text.push_str(REVIEW.trim_end());
    }
    text.push_str("\n\nEnvironment:\n");
    text.push_str(&format!("- directory: {}\n", environment.directory));
    text.push_str(&format!("- platform: {}\n", environment.platform));
    if let Some(branch) = &environment.branch {
        text.push_str(&format!("- git branch: {branch}\n"));
    }
    text.push_str(&format!("- date: {}", environment.date));
    if let Some(instructions) = &environment.instructions {
        text.push_str("\n\nThe project's own instructions (AGENTS.md):\n\n");
        text.push_str(instructions.trim());
    }
    text
}

/// The first message: the request, and its background if there is one.
pub fn request_text(request: &str, background: Option<&str>) -> String {
    match background.map(str::trim).filter(|text| !text.is_empty()) {
        Some(background) => format!("{request}\n\n**Background:** {background}"),
        None => request.to_owned(),
    }
}

/// The branch that HEAD names, read without running git.
fn branch(directory: &Path) -> Option<String> {
    let git = directory.ancestors().map(|ancestor| ancestor.join(".git")).find(|path| path.exists())?;
    let head = std::fs::read_to_string(git.join("HEAD")).ok()?;
    let head = head.trim();
    Some(head.strip_prefix("ref: refs/heads/").map_or_else(|| head.chars().take(12).collect(), str::to_owned))
}

fn instructions(directory: &Path) -> Option<String> {
    use std::io::Read;
    let file = std::fs::File::open(directory.join("AGENTS.md")).ok()?;
    let mut bytes = Vec::new();
    file.take(INSTRUCTIONS_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
    let cut = bytes.len() > INSTRUCTIONS_BYTES;
    bytes.truncate(INSTRUCTIONS_BYTES);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if cut {
        text.push_str("\n[cut here: read AGENTS.md for the rest]");
    }
    (!text.trim().is_empty()).then_some(text)
}
