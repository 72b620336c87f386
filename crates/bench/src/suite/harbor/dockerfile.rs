//! The Dockerfile of a task, as far as a directory can stand for its container: files that are copied, the working
//! directory and variables. Anything that would have to be run is a reason to skip the task.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::case::CaseFile;
use crate::suite::table::tree;

/// Where a container works unless its image says otherwise.
const WORKDIR: &str = "/app";

/// What a directory takes from an image.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) workdir: PathBuf,
    pub(super) files: Vec<CaseFile>,
    pub(super) environment: BTreeMap<String, String>,
}

impl Default for Image {
    fn default() -> Self {
        Self { workdir: PathBuf::from(WORKDIR), files: Vec::new(), environment: BTreeMap::new() }
    }
}

impl Image {
    /// Reads `Dockerfile` in the folder of the environment; the error says why a directory cannot stand for it.
    pub(super) fn read(folder: &Path, workdir: Option<&Path>) -> Result<Self, String> {
        if folder.join("docker-compose.yaml").exists() || folder.join("docker-compose.yml").exists() {
            return Err("needs several containers (docker-compose.yaml)".to_owned());
        }
        let path = folder.join("Dockerfile");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let mut image = Self::default();
        let mut current = PathBuf::from("/");
        let mut copies = Vec::new();
        for (instruction, rest) in instructions(&text) {
            match instruction.as_str() {
                "FROM" | "LABEL" | "ARG" | "CMD" | "ENTRYPOINT" | "USER" | "EXPOSE" | "SHELL"
                | "MAINTAINER" | "STOPSIGNAL" => {}
                "WORKDIR" => current = current.join(rest.trim()),
                "ENV" => image.environment.extend(variables(&rest)),
                "COPY" | "ADD" => copies.push((rest, current.clone())),
                "RUN" if is_harmless(&rest) => {}
                other => {
                    let shown: String = rest.chars().take(60).collect();
                    return Err(format!("needs a container: its Dockerfile has `{other} {}`", shown.trim()));
                }
            }
        }
        if current != Path::new("/") {
            image.workdir = current;
        }
        if let Some(workdir) = workdir {
            image.workdir = workdir.to_owned();
        }
        for (words, at) in copies {
            image.copy(folder, &words, &at)?;
        }
        Ok(image)
    }

    /// Adds the files of a COPY instruction.
    fn copy(&mut self, folder: &Path, words: &str, at: &Path) -> Result<(), String> {
        let refused = || format!("needs a container: its Dockerfile has `COPY {words}`");
        let words: Vec<&str> = words.split_whitespace().filter(|word| !word.starts_with("--")).collect();
        let Some((target, sources)) = words.split_last() else { return Err(refused()) };
        if sources.is_empty() || words.iter().any(|word| word.contains(['*', '?', '[', '$'])) {
            return Err(refused());
        }
        let place = at.join(target);
        let Ok(inside) = place.strip_prefix(&self.workdir) else { return Err(refused()) };
        for source in sources {
            let path = folder.join(source.trim_start_matches('/'));
            let fault = |error: std::io::Error| format!("{}: {error}", path.display());
            if path.is_dir() {
                for file in tree(&path).map_err(fault)? {
                    self.add(CaseFile { path: inside.join(&file.path), source: file.source });
                }
            } else if path.is_file() {
                let into_folder =
                    target.ends_with('/') || sources.len() > 1 || *target == "." || place == self.workdir;
                let name = path.file_name().unwrap_or_default();
                let to = if into_folder { inside.join(name) } else { inside.to_owned() };
                self.add(CaseFile { path: to, source: path.clone() });
            } else {
                return Err(format!(
                    "{}: the file that its Dockerfile copies does not exist",
                    path.display()
                ));
            }
        }
        Ok(())
    }

    /// Adds a file; a later copy replaces an earlier one. The Dockerfile itself is not part of the image.
    fn add(&mut self, file: CaseFile) {
        if file.path == Path::new("Dockerfile") {
            return;
        }
        self.files.retain(|known| known.path != file.path);
        self.files.push(CaseFile { path: file.path.components().collect(), source: file.source });
    }
}

/// Instructions with their arguments, continued lines joined, comments left out.
fn instructions(text: &str) -> Vec<(String, String)> {
    let mut joined: Vec<String> = Vec::new();
    let mut continued = false;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (content, more) = match line.strip_suffix('\\') {
            Some(content) => (content.trim_end(), true),
            None => (line, false),
        };
        match joined.last_mut() {
            Some(last) if continued => {
                last.push(' ');
                last.push_str(content);
            }
            _ => joined.push(content.to_owned()),
        }
        continued = more;
    }
    let split = |line: String| {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
        (word.to_ascii_uppercase(), rest.trim().to_owned())
    };
    joined.into_iter().map(split).collect()
}

/// Whether a command only makes directories, which exist anyway where files are copied.
fn is_harmless(command: &str) -> bool {
    command.split("&&").all(|part| part.trim().starts_with("mkdir ") && !part.contains([';', '|', '`', '$']))
}

fn variables(words: &str) -> Vec<(String, String)> {
    let unquoted = |value: &str| value.trim_matches(['"', '\'']).to_owned();
    match words.split_once('=') {
        None => words
            .split_once(' ')
            .map(|(name, value)| (name.to_owned(), unquoted(value.trim())))
            .into_iter()
            .collect(),
        Some(_) => words
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| (name.to_owned(), unquoted(value)))
            .collect(),
    }
}
