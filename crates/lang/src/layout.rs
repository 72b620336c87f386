//! Formatting of workflows for `fusee fmt`.

use fusee_text::sexpr::{Indent, layout, read};
use fusee_text::{Diagnostics, Source};

use crate::builtin::Builtin;
use crate::form::SpecialForm;

/// Formats a workflow, keeping its comments; returns the diagnostics if it has syntax errors.
pub fn format(source: &Source) -> Result<String, Diagnostics> {
    let (tree, problems) = read(source);
    if problems.has_errors() { Err(problems) } else { Ok(layout(&tree, &indent)) }
}

/// How a list with this head is broken over lines; `None` if the head is neither a form nor a library
/// function.
pub fn indent(head: &str) -> Option<Indent> {
    match SpecialForm::find(head) {
        Some(form) => Some(form.indent),
        None => Builtin::find(head).map(|_| Indent::Align),
    }
}
