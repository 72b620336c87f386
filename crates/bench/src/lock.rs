//! `lock.json`: what a job measures, fixed when it starts, so that it can be resumed and repeated.

use std::path::{Path, PathBuf};

use fusee::launch::LaunchLimits;
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::language::TestCommands;
use crate::suite::Selection;

/// Version of the file's format.
const FORMAT: u32 = 1;

/// What a job measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    /// Version of this format.
    pub format: u32,
    /// Id of the job, which begins the ids of its runs.
    pub job: String,
    /// Version of Fusee.
    pub fusee: String,
    /// When the job was created.
    pub created: String,
    /// Operating system and CPU architecture.
    pub platform: String,
    /// What was asked for.
    pub settings: JobSettings,
    /// The cases in the order in which they are run, each with a hash of its files.
    pub cases: Vec<LockedCase>,
    /// The agent files of the variants, each with a hash of its content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<LockedAgent>,
}

/// What a user asks a job to measure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobSettings {
    /// The suite: `demo`, or an absolute path.
    pub suite: PathBuf,
    /// Which cases.
    #[serde(default)]
    pub selection: Selection,
    /// What is compared.
    pub variants: Vec<Variant>,
    /// Tries per attempt; each further one sees the output of the tests.
    pub tries: u32,
    /// Attempts per case and variant.
    pub attempts: u32,
    /// Base URL of the models' server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Wire format of the models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// Limits of each run.
    #[serde(default)]
    pub limits: LaunchLimits,
    /// Whether the runtime may run the tests while the model works.
    #[serde(default)]
    pub verify: bool,
    /// Test commands by language that replace those built in.
    #[serde(default, skip_serializing_if = "TestCommands::is_empty")]
    pub test_commands: TestCommands,
}

/// One of the things that are compared: a model with a flow and an agent file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Model, as for `--model`; from the configuration without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Flow; from the configuration without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Agent file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<PathBuf>,
}

/// A case of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedCase {
    /// Name as given on the command line or in the suite.
    pub name: String,
    /// Hash of everything that defines the case.
    pub hash: String,
}

/// An agent file of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedAgent {
    /// Path as in the variant.
    pub file: PathBuf,
    /// Hash of its content.
    pub hash: String,
}

impl Variant {
    /// A name for folders: its number and its words.
    pub fn folder(&self, number: usize) -> String {
        let words =
            [self.model.as_deref(), self.flow.as_deref(), self.agent.as_deref().and_then(Path::to_str)];
        let words = words.into_iter().flatten().map(|word| word.rsplit('/').next().unwrap_or(word));
        let text = words.collect::<Vec<_>>().join("-");
        let fits = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        let text: String = text.chars().map(fits).take(48).collect();
        format!("{}-{text}", number + 1).trim_end_matches('-').to_owned()
    }
}

impl Lock {
    /// Locks a new job.
    pub(crate) fn new(job: String, created: String, settings: JobSettings, cases: &[Case]) -> Self {
        let locked = |case: &Case| LockedCase { name: case.name.clone(), hash: hash(case) };
        Self {
            format: FORMAT,
            job,
            fusee: env!("CARGO_PKG_VERSION").to_owned(),
            created,
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            agents: agents(&settings),
            settings,
            cases: cases.iter().map(locked).collect(),
        }
    }

    /// An agent file whose content has changed since the job started.
    pub(crate) fn changed_agent(&self) -> Option<&Path> {
        let now = agents(&self.settings);
        let changed = self.agents.iter().find(|agent| !now.contains(agent));
        changed.map(|agent| agent.file.as_path())
    }

    /// Reads the lock of a job; `None` if the folder holds none.
    pub fn read(folder: &Path) -> Result<Option<Self>, String> {
        let path = folder.join("lock.json");
        let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fault(&error)),
        };
        let lock: Self = serde_json::from_str(&text).map_err(|error| fault(&error))?;
        if lock.format != FORMAT {
            return Err(fault(&format!("format {} is not supported by this version", lock.format)));
        }
        Ok(Some(lock))
    }
}

fn agents(settings: &JobSettings) -> Vec<LockedAgent> {
    let mut files: Vec<&PathBuf> =
        settings.variants.iter().filter_map(|variant| variant.agent.as_ref()).collect();
    files.sort();
    files.dedup();
    // A file that cannot be read is reported when the first run starts.
    let locked = |file: &PathBuf| LockedAgent {
        file: file.clone(),
        hash: short_hash(&std::fs::read(file).unwrap_or_default()),
    };
    files.into_iter().map(locked).collect()
}

fn short_hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}

/// Hash of a case: its request, its files with their content, and how it is tested.
fn hash(case: &Case) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(case.request().as_bytes());
    add(case.test.command.as_bytes());
    for file in &case.files {
        add(file.path.to_string_lossy().as_bytes());
        // A file that cannot be read is reported when the case is laid out.
        add(&std::fs::read(&file.source).unwrap_or_default());
    }
    if let crate::case::Verdict::RewardFile { tests } = &case.test.verdict {
        for file in crate::suite::table::tree(tests).unwrap_or_default() {
            add(file.path.to_string_lossy().as_bytes());
            add(&std::fs::read(&file.source).unwrap_or_default());
        }
    }
    hasher.finalize().to_hex()[..16].to_owned()
}
