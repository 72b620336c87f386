//! Which projects the user trusts, by the path of their `fusee.toml` and a hash of everything that trust
//! enables. Stored in the user's state folder, out of reach of projects and sandboxed commands. A project in
//! which any of it has changed is no longer trusted.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fusee::engine::template::{FilePaths, TemplateFolder, TemplateLayer, load};
use fusee::engine::text::Diagnostics;
use fusee::engine::tools::workspace::bounded_read;
use serde::{Deserialize, Serialize};

use super::file::{self, FileOwner};
use super::hooks;
use super::value::Value;
use crate::process::environment::Environment;

/// Maximum number of entries; entries of deleted files are dropped first, then the first ones by path.
const MAX_ENTRIES: usize = 1000;
/// Maximum size of the list in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Trusted files with the hash of their content.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    /// The file it is stored in; `None` without a home directory.
    file: Option<PathBuf>,
    known: TrustedFile,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustedFile {
    files: BTreeMap<PathBuf, String>,
}

impl Trust {
    /// Loads the list. An unreadable list counts as empty.
    pub(crate) fn read(environment: &Environment) -> Self {
        let file = environment.state_folder().map(|folder| folder.join("trust.json"));
        let small = |file: &PathBuf| fs::metadata(file).is_ok_and(|found| found.len() <= MAX_BYTES);
        let text = file.as_ref().filter(|file| small(file)).and_then(|file| fs::read(file).ok());
        let known = text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        Self { file, known }
    }

    /// Whose file a project's `fusee.toml` with this content is.
    pub(crate) fn owner(&self, path: &Path, content: &str) -> FileOwner {
        match self.known.files.get(&place(path)) {
            None => FileOwner::Project,
            Some(known) if *known == hash(path, content) => FileOwner::TrustedProject,
            Some(_) => FileOwner::ChangedProject,
        }
    }

    /// Trusts a project with its current content.
    pub(crate) fn grant(&mut self, path: &Path, content: &str) -> io::Result<()> {
        if self.known.files.len() >= MAX_ENTRIES {
            self.known.files.retain(|file, _| file.exists());
        }
        while self.known.files.len() >= MAX_ENTRIES {
            self.known.files.pop_first();
        }
        self.known.files.insert(place(path), hash(path, content));
        self.save()
    }

    /// Revokes trust; returns whether the file was trusted.
    pub(crate) fn revoke(&mut self, path: &Path) -> io::Result<bool> {
        let was = self.known.files.remove(&place(path)).is_some();
        if was {
            self.save()?;
        }
        Ok(was)
    }

    fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Err(io::Error::other("no location to save it: HOME is not set"));
        };
        let folder = file.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        // Write to a temporary file and rename, so that no reader sees a partial list.
        let beside = folder.join(format!("trust.json.{}", std::process::id()));
        let mut written = fs::File::create(&beside)?;
        written.write_all(format!("{}\n", serde_json::to_string_pretty(&self.known)?).as_bytes())?;
        written.sync_all()?;
        fs::rename(&beside, file)
    }
}

/// The canonical path of a file.
fn place(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The hash of a `fusee.toml` and of everything beside it that trust enables.
fn hash(path: &Path, content: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(content.as_bytes());
    for TrustedPart { file, content } in trusted_parts(path.parent().unwrap_or(Path::new("/"))) {
        for text in [file.as_os_str().as_encoded_bytes(), content.as_bytes()] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text);
        }
    }
    hasher.finalize().to_hex().to_string()
}

/// Something outside `fusee.toml` that trusting a project enables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrustedPart {
    /// Its file, relative to the project.
    pub(crate) file: PathBuf,
    /// An agent, prompt or hooks file with its content, a command of a template or workflow, or the hash of a file
    /// that a hook runs.
    pub(crate) content: String,
}

/// The agent files of a project, the prompts that they name, its hooks with the files they run, and the commands of
/// its templates and workflows.
pub(crate) fn trusted_parts(home: &Path) -> Vec<TrustedPart> {
    let mut parts = Vec::new();
    let part = |file: &Path, content: String| TrustedPart {
        file: file.strip_prefix(home).unwrap_or(file).to_owned(),
        content,
    };
    for file in agent_files(home) {
        let Ok(text) = bounded_read::read_text(&file, super::MAX_BYTES) else { continue };
        if let Some(prompt) = agent_prompt(&file)
            && let Ok(text) = bounded_read::read_text(&prompt, super::MAX_BYTES)
        {
            parts.push(part(&prompt, text));
        }
        parts.push(part(&file, text));
    }
    let file = home.join(hooks::PROJECT_FILE);
    if let Some((source, found)) =
        hooks::read(&file, &file.display().to_string(), true, &mut Diagnostics::new())
    {
        parts.push(part(&file, source.text().to_owned()));
        let real = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        for hook in found {
            for (file, hash) in hooks::files_of(&hook.command, &real, &real) {
                parts.push(TrustedPart {
                    file: file.strip_prefix(&real).unwrap_or(&file).to_owned(),
                    content: hash,
                });
            }
        }
    }
    let folder = |name: &str| TemplateFolder {
        path: home.join(".fusee").join(name),
        layer: TemplateLayer::Project,
        shown_below: Some(home.to_owned()),
    };
    for known in load(&[folder("templates")]).registry.all() {
        if let Some(FilePaths::Command(command)) = &known.template.file_paths {
            parts.push(part(Path::new(&*known.text.file), command.clone()));
        }
    }
    for name in ["templates", "workflows"] {
        for file in files_in(&home.join(".fusee").join(name), &["fusee"]) {
            let Ok(text) = bounded_read::read_text(&file, super::MAX_BYTES) else { continue };
            if COMMAND_CALLS.iter().any(|call| text.contains(call)) {
                parts.push(part(&file, text));
            }
        }
    }
    parts.sort_by(|a, b| a.file.cmp(&b.file));
    parts.dedup();
    parts
}

/// Calls that run a command in a workflow.
const COMMAND_CALLS: [&str; 2] = ["shell", "run_script"];

/// The agent files of a project.
pub(crate) fn agent_files(home: &Path) -> Vec<PathBuf> {
    ["agents", ".fusee/agents"]
        .iter()
        .flat_map(|name| files_in(&home.join(name), &["toml", "json"]))
        .collect()
}

/// The prompt file that an agent file names.
fn agent_prompt(file: &Path) -> Option<PathBuf> {
    let (_, content) = file::read(file, |_| FileOwner::Agent, &mut Diagnostics::new())?;
    let prompt = content.values.into_iter().find(|(key, ..)| key.name == "prompt")?.1;
    let Value::Text(name) = prompt else { return None };
    Some(file.parent()?.join(name))
}

/// The files directly in a folder that end in one of these, sorted; at most [`MAX_ENTRIES`].
fn files_in(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES);
    let wanted =
        |path: &PathBuf| path.extension().and_then(OsStr::to_str).is_some_and(|end| endings.contains(&end));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(wanted).collect();
    files.sort();
    files
}
