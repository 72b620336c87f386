//! The compiler, which is also the checker: turns text into a [`Program`] and reports everything wrong with
//! it.
//!
//! [`files`] reads the text and the files it loads, [`scan`] collects the names it defines, [`compiler`]
//! compiles expressions to instructions. Expressions can nest deeper than the host's stack, so [`compiler`]
//! processes a work list of [`compiler::CompileJob`] items instead of recursing. The forms are in files named after
//! their groups; [`scope`] resolves names.

mod bindings;
mod call;
mod compiler;
mod conditionals;
mod defatom;
mod define;
mod emit;
mod expr;
mod failure;
mod files;
mod loops;
mod pattern;
mod scan;
mod scope;
mod task;

use std::sync::Arc;

use fusee_text::sexpr::read;
use fusee_text::{Diagnostics, Source};

use crate::bytecode::Program;
use crate::catalog::Catalog;
use crate::param::Param;
use compiler::Compiler;
use files::SourceFiles;

/// Resolves `load`. The language itself does not access files.
pub trait FileLoader {
    /// Returns the source that `path`, as written in the workflow `from`, refers to, or why it cannot be
    /// loaded.
    ///
    /// The same file must always give a source with the same name: the name identifies files that were loaded
    /// before and files that load themselves.
    fn load(&mut self, from: &Source, path: &str) -> Result<Source, String>;
}

/// A loader without files, for workflows that consist of a single text.
pub struct NoFiles;

impl FileLoader for NoFiles {
    fn load(&mut self, _from: &Source, _path: &str) -> Result<Source, String> {
        Err("loading files is not supported here".to_owned())
    }
}

/// Result of compiling a workflow.
pub struct Compiled {
    /// The program; `None` if there are errors.
    pub program: Option<Arc<Program>>,
    /// All errors and warnings.
    pub diagnostics: Diagnostics,
    /// The sources that were read, for rendering the diagnostics.
    pub sources: Vec<Source>,
}

/// The parameters declared by a workflow, ignoring the rest of the text; empty if the declaration is invalid.
pub fn params(source: &Source) -> Vec<Param> {
    let (tree, _) = read(source);
    let declarations = tree.roots().iter().filter(|root| tree.head(**root) == Some("params"));
    let text: Vec<&str> = declarations.map(|root| source.slice(tree.span(*root))).collect();
    let declared =
        compile(&Source::new(source.name().clone(), text.join("\n")), &Catalog::new(), &mut NoFiles);
    declared.program.map(|program| program.params().cloned().collect()).unwrap_or_default()
}

/// Checks and compiles a workflow without running anything.
pub fn compile(source: &Source, catalog: &Catalog, loader: &mut dyn FileLoader) -> Compiled {
    let (files, diagnostics) = SourceFiles::read(source, loader);
    let sources = files.sources();
    let (program, diagnostics) = Compiler::program(&files, catalog, diagnostics);
    let program = (!diagnostics.has_errors()).then(|| Arc::new(program));
    Compiled { program, diagnostics, sources }
}
