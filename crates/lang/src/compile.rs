//! From text to a [`Program`], reporting everything that is wrong with it on the way: the checker is the compiler.
//!
//! [`files`] reads the text and what it loads, [`scan`] finds the names it defines, [`lower`] turns expressions into
//! instructions one piece of [`lower::Work`] at a time, since expressions nest deeper than the host's stack. The forms
//! are in the files named after their groups; [`scope`] knows where a name lives.

mod atom;
mod bind;
mod call;
mod choose;
mod define;
mod emit;
mod expr;
mod failure;
mod files;
mod looping;
mod lower;
mod pattern;
mod scan;
mod scope;
mod task;

use std::sync::Arc;

use fusee_text::sexpr::read;
use fusee_text::{Diagnostics, Source};

use crate::catalog::Catalog;
use crate::code::Program;
use crate::param::Param;
use files::Files;
use lower::Lower;

/// Finds the text a workflow loads. The caller knows about files; the language does not.
pub trait Load {
    /// The source that `path`, as written in the workflow called `from`, names; or why there is none.
    ///
    /// The name of the source must be the same however it was reached: it is how a file that was loaded before, and a
    /// file that loads itself, are recognised.
    fn load(&mut self, from: &Source, path: &str) -> Result<Source, String>;
}

/// Loads nothing: for workflows that are a single text.
pub struct NoFiles;

impl Load for NoFiles {
    fn load(&mut self, _from: &Source, _path: &str) -> Result<Source, String> {
        Err("no files can be loaded here".to_owned())
    }
}

/// What compiling came to.
pub struct Compiled {
    /// The program, unless an error was found.
    pub program: Option<Arc<Program>>,
    /// Everything that was found, warnings too.
    pub diagnostics: Diagnostics,
    /// The sources that were read, to show the diagnostics with.
    pub sources: Vec<Source>,
}

/// The parameters a workflow declares, whatever the rest of it is; none if they are not right.
pub fn params(source: &Source) -> Vec<Param> {
    let (tree, _) = read(source);
    let declarations = tree.roots().iter().filter(|root| tree.head(**root) == Some("params"));
    let text: Vec<&str> = declarations.map(|root| source.slice(tree.span(*root))).collect();
    let declared =
        compile(&Source::new(source.name().clone(), text.join("\n")), &Catalog::new(), &mut NoFiles);
    declared.program.map(|program| program.params().cloned().collect()).unwrap_or_default()
}

/// Checks and compiles a workflow. Nothing runs, nothing is spent.
pub fn compile(source: &Source, catalog: &Catalog, loader: &mut dyn Load) -> Compiled {
    let (files, diagnostics) = Files::read(source, loader);
    let sources = files.sources();
    let (program, diagnostics) = Lower::program(&files, catalog, diagnostics);
    let program = (!diagnostics.has_errors()).then(|| Arc::new(program));
    Compiled { program, diagnostics, sources }
}
