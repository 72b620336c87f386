//! Loads templates from folders. A template with errors is not registered; the others are.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use fusee_text::{Diagnostic, Severity, Source, xml};

use super::registry::{RegisteredTemplate, TemplateLayer, TemplateRegistry};
use super::{Template, TemplateText};

/// Maximum nesting depth of folders.
const MAX_DEPTH: usize = 16;

/// Maximum number of files; more are reported and not read.
const MAX_FILES: usize = 20_000;

/// A folder of templates and its layer.
#[derive(Clone, Debug)]
pub struct TemplateFolder {
    /// Path of the folder.
    pub path: PathBuf,
    /// Layer of its templates.
    pub layer: TemplateLayer,
    /// Root that is stripped from file names in messages, if any.
    pub shown_below: Option<PathBuf>,
}

/// Result of loading templates.
#[derive(Debug, Default)]
pub struct LoadedTemplates {
    /// The valid templates.
    pub registry: TemplateRegistry,
    /// Errors in the others, without warnings.
    pub problems: Vec<Diagnostic>,
    /// Source texts of the problems.
    pub sources: Vec<Source>,
}

/// Loads all templates of these folders. A missing folder counts as empty.
pub fn load(folders: &[TemplateFolder]) -> LoadedTemplates {
    let mut loaded = LoadedTemplates::default();
    for folder in folders {
        let mut files = Vec::new();
        if !find(&folder.path, 0, &mut files) {
            let message = format!("more than {MAX_FILES} files; the rest is ignored");
            let file = folder.path.display().to_string();
            loaded.problems.push(Diagnostic::file_error("too-many-templates", file, message));
        }
        files.sort();
        files.iter().for_each(|file| loaded.add(file, folder));
    }
    loaded
}

impl LoadedTemplates {
    /// Keeps the previous templates of files that have errors now, and returns their names, so that an
    /// unfinished edit does not remove a template.
    pub fn keep(&mut self, before: &TemplateRegistry) -> Vec<String> {
        let broken: HashSet<&str> = self.problems.iter().map(|problem| problem.file.as_ref()).collect();
        let stood = before.all().into_iter().filter(|known| broken.contains(known.text.file.as_str()));
        let stood: Vec<RegisteredTemplate> = stood.map(|known| RegisteredTemplate::clone(known)).collect();
        let mut kept = Vec::new();
        for known in stood {
            let name = known.template.name.clone();
            // Another file may have taken the name.
            if self.registry.register(known).is_ok() {
                kept.push(name);
            }
        }
        kept
    }

    fn add(&mut self, path: &Path, folder: &TemplateFolder) {
        let shown =
            folder.shown_below.as_deref().and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path);
        let file = shown.display().to_string();
        let bytes = match read_bounded(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                let message = format!("cannot be read: {error}");
                return self.problems.push(Diagnostic::file_error("unreadable-file", file, message));
            }
        };
        let (template, source, problems) = Template::from_bytes(&file, &bytes);
        let Some(template) = template else {
            self.problems.extend(problems.into_iter().filter(|problem| problem.severity == Severity::Error));
            return self.sources.push(source);
        };
        let text = TemplateText { file: file.clone(), text: source.text().to_owned() };
        if let Err(twice) = self.registry.register(RegisteredTemplate { template, text, layer: folder.layer })
        {
            self.problems.push(Diagnostic::file_error("duplicate-template", file, twice.to_string()));
            self.sources.push(source);
        }
    }
}

/// Reads a file up to one byte beyond the limit, which is enough for it to be rejected.
pub(crate) fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(xml::LARGEST as u64 * 4 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Collects all `.xml` files below a folder; returns false if there are too many.
fn find(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return true };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth < MAX_DEPTH {
            if !find(&path, depth + 1, files) {
                return false;
            }
        } else if !kind.is_dir()
            && path.extension().is_some_and(|extension| extension == "xml")
            && path.is_file()
        {
            if files.len() >= MAX_FILES {
                return false;
            }
            files.push(path);
        }
    }
    true
}
