//! Reading a workflow and the files it loads.

use std::collections::HashMap;

use fusee_text::sexpr::{NodeId, Tree, read};
use fusee_text::{Diagnostic, Diagnostics, Source};

use super::FileLoader;

/// Maximum number of files per workflow.
const MAX_FILES: usize = 256;

/// The parsed files, the workflow itself first.
pub(super) struct SourceFiles {
    pub(super) trees: Vec<Tree>,
    /// The file loaded by each `load` form; absent if the load failed or the file was already loaded.
    pub(super) loads: HashMap<(usize, NodeId), usize>,
}

impl SourceFiles {
    /// Reads a source and, depth first, the files it loads.
    pub(super) fn read(source: &Source, loader: &mut dyn FileLoader) -> (SourceFiles, Diagnostics) {
        let (tree, diagnostics) = read(source);
        let mut reading = FileReader {
            files: SourceFiles { trees: vec![tree], loads: HashMap::new() },
            known: HashMap::from([(source.name().to_string(), 0)]),
            open: vec![OpenFile { file: 0, next: 0 }],
            diagnostics,
        };
        while reading.step(loader) {}
        (reading.files, reading.diagnostics)
    }

    pub(super) fn sources(&self) -> Vec<Source> {
        self.trees.iter().map(|tree| tree.source().clone()).collect()
    }
}

struct FileReader {
    files: SourceFiles,
    known: HashMap<String, usize>,
    /// The chain of files from the workflow to the one being read, innermost last.
    open: Vec<OpenFile>,
    diagnostics: Diagnostics,
}

struct OpenFile {
    file: usize,
    /// Index of the next root to visit.
    next: usize,
}

impl FileReader {
    /// Visits one root; false when all are done.
    fn step(&mut self, loader: &mut dyn FileLoader) -> bool {
        let Some(open) = self.open.last_mut() else { return false };
        let file = open.file;
        let tree = &self.files.trees[file];
        match tree.roots().get(open.next).copied() {
            None => {
                self.open.pop();
            }
            Some(root) => {
                open.next += 1;
                if tree.head(root) == Some("load") {
                    self.load(file, root, loader);
                }
            }
        }
        true
    }

    fn load(&mut self, file: usize, root: NodeId, loader: &mut dyn FileLoader) {
        let tree = &self.files.trees[file];
        let source = tree.source().clone();
        let span = tree.span(root);
        let &[_, path] = tree.items(root) else {
            return self.report(
                &source,
                span,
                "bad-load",
                "`load` takes one string, the path of a file".to_owned(),
            );
        };
        let Some(path) = tree.string(path).map(str::to_owned) else {
            return self.report(&source, span, "bad-load", "`load` takes a string literal".to_owned());
        };
        let loaded = match loader.load(&source, &path) {
            Ok(loaded) => loaded,
            Err(why) => {
                return self.report(&source, span, "bad-load", format!("cannot load `{path}`: {why}"));
            }
        };
        if let Some(&known) = self.known.get(&**loaded.name()) {
            if let Some(from) = self.open.iter().position(|open| open.file == known) {
                let names =
                    self.open[from..].iter().map(|open| &**self.files.trees[open.file].source().name());
                let chain: Vec<&str> = names.chain([&**loaded.name()]).collect();
                let message = format!("`{path}` loads itself: {}", chain.join(" → "));
                self.report(&source, span, "load-cycle", message);
            }
            return;
        }
        if self.files.trees.len() >= MAX_FILES {
            return self.report(&source, span, "bad-load", format!("more than {MAX_FILES} files loaded"));
        }
        let (tree, problems) = read(&loaded);
        self.diagnostics.extend(problems);
        let index = self.files.trees.len();
        self.known.insert(loaded.name().to_string(), index);
        self.files.trees.push(tree);
        self.files.loads.insert((file, root), index);
        self.open.push(OpenFile { file: index, next: 0 });
    }

    fn report(&mut self, source: &Source, span: fusee_text::Span, code: &'static str, message: String) {
        self.diagnostics.push(Diagnostic::error(code, source, span, message));
    }
}
