//! Templates from folders. One that has mistakes does not register; the others do.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use fusee_text::{Diagnostic, Severity, Source, xml};

use super::registry::{Layer, Registered, Registry};
use super::{Template, TemplateText};

/// Folders nest no deeper.
const DEEPEST: usize = 16;

/// More files than this are not read, and that is said.
const MOST_FILES: usize = 20_000;

/// A folder of templates and the layer it is.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Where.
    pub path: PathBuf,
    /// Which layer.
    pub layer: Layer,
    /// What its files are called in messages: the path below this is shown, if there is one.
    pub shown_below: Option<PathBuf>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The templates.
    pub registry: Registry,
    /// What is wrong with the others, warnings left out.
    pub problems: Vec<Diagnostic>,
    /// The texts that the problems are about.
    pub sources: Vec<Source>,
}

/// Reads all templates of these folders. A folder that is not there is empty.
pub fn load(folders: &[Folder]) -> Loaded {
    let mut loaded = Loaded::default();
    for folder in folders {
        let mut files = Vec::new();
        if !find(&folder.path, 0, &mut files) {
            let message = format!("more than {MOST_FILES} files are there; the rest is not read");
            let file = folder.path.display().to_string();
            loaded.problems.push(Diagnostic::file_error("too-many-templates", file, message));
        }
        files.sort();
        files.iter().for_each(|file| loaded.add(file, folder));
    }
    loaded
}

impl Loaded {
    /// Takes over what stood before in files that have mistakes now, and names what that is: an edit under way takes
    /// nothing away.
    pub fn keep(&mut self, before: &Registry) -> Vec<String> {
        let broken: HashSet<&str> = self.problems.iter().map(|problem| problem.file.as_ref()).collect();
        let stood = before.all().into_iter().filter(|known| broken.contains(known.text.file.as_str()));
        let stood: Vec<Registered> = stood.map(|known| Registered::clone(known)).collect();
        let mut kept = Vec::new();
        for known in stood {
            let name = known.template.name.clone();
            // Another file may have the name by now.
            if self.registry.register_template(known).is_ok() {
                kept.push(name);
            }
        }
        kept
    }

    fn add(&mut self, path: &Path, folder: &Folder) {
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
        if let Err(twice) =
            self.registry.register_template(Registered { template, text, layer: folder.layer })
        {
            self.problems.push(Diagnostic::file_error("duplicate-template", file, twice.to_string()));
            self.sources.push(source);
        }
    }
}

/// The bytes of a file, one more than are read at most: enough to be refused.
pub(crate) fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(xml::LARGEST as u64 * 4 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// All `.xml` files below; false if there are too many.
fn find(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return true };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth < DEEPEST {
            if !find(&path, depth + 1, files) {
                return false;
            }
        } else if !kind.is_dir()
            && path.extension().is_some_and(|extension| extension == "xml")
            && path.is_file()
        {
            if files.len() >= MOST_FILES {
                return false;
            }
            files.push(path);
        }
    }
    true
}
