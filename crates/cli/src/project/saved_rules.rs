//! Saved "always" answers, per project, in the user's state folder, so that no project and no sandboxed
//! command can grant itself one.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fusee::engine::approval::rules::{ApprovalRule, ApprovalRules};

use crate::process::environment::Environment;
use crate::project::Project;

/// Maximum size of the list in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The file with a project's saved answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct SavedRules {
    file: Option<PathBuf>,
}

impl SavedRules {
    /// The saved answers of a project.
    pub(crate) fn new(project: &Project, environment: &Environment) -> Self {
        let folder =
            environment.state_folder().map(|states| states.join("projects").join(project.state_name()));
        Self { file: folder.map(|folder| folder.join("approvals.json")) }
    }

    /// Loads the saved rules. An unreadable file counts as empty, which only leads to more questions.
    pub(crate) fn read(&self) -> ApprovalRules {
        let small = |file: &&PathBuf| fs::metadata(file).is_ok_and(|found| found.len() <= MAX_BYTES);
        let text = self.file.as_ref().filter(small).and_then(|file| fs::read(file).ok());
        text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// Adds and saves rules.
    pub(crate) fn add(&self, rules: Vec<ApprovalRule>) -> io::Result<()> {
        let mut all = self.read();
        rules.into_iter().for_each(|rule| all.add(rule));
        self.write(&all)
    }

    /// Replaces the saved rules.
    pub(crate) fn write(&self, all: &ApprovalRules) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Err(io::Error::other("no location to save it: HOME is not set"));
        };
        let folder = file.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        // Write to a temporary file and rename, so that no reader sees a partial list.
        let beside = folder.join(format!("approvals.json.{}", std::process::id()));
        let mut written = fs::File::create(&beside)?;
        written.write_all(format!("{}\n", serde_json::to_string_pretty(all)?).as_bytes())?;
        fs::rename(&beside, file)
    }
}
