//! A workflow laid out: what `fusee fmt` writes.

use fusee_text::sexpr::{Indent, layout, read};
use fusee_text::{Diagnostics, Source};

use crate::builtin::Builtin;
use crate::form::Form;

/// The text of a workflow laid out, with its comments; or what is wrong with the text, which is then left alone.
pub fn format(source: &Source) -> Result<String, Diagnostics> {
    let (tree, problems) = read(source);
    if problems.has_errors() { Err(problems) } else { Ok(layout(&tree, &indent)) }
}

/// How a list with this head breaks over lines; `None` for heads that are neither forms nor library functions.
pub fn indent(head: &str) -> Option<Indent> {
    match Form::find(head) {
        Some(form) => Some(form.indent),
        None => Builtin::find(head).map(|_| Indent::Align),
    }
}
