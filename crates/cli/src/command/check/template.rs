//! Template checks of `fusee check`.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use fusee::engine::task_system::{check_tools, effective};
use fusee::engine::template::Template;
use fusee::engine::text::{Diagnostic, Source, xml};
use fusee::engine::workflow::standard_tools;

use super::CheckFindings;

/// Number of bytes searched for the root element.
const HEAD: u64 = 4096;

/// Whether a file is meant to be a template: other programs use XML too.
pub(super) fn is_one(file: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(file).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.is_ok() && xml::decode(&head).is_ok_and(|text| text.contains("<task"))
}

/// Reports all problems of one template, including a name that is already taken.
pub(super) fn check(name: &str, path: &Path, findings: &mut CheckFindings) {
    let mut bytes = Vec::new();
    // Up to four bytes per character, plus one so that a larger file is rejected for its size.
    let most = xml::LARGEST as u64 * 4 + 1;
    if let Err(error) = File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)) {
        return findings.unreadable(name, &error.to_string());
    }
    let (template, source, mut problems) = Template::from_bytes(name, &bytes);
    if let Some(template) = template {
        problems.extend(context_conflict(&template, &source));
        if let Err(slip) = check_tools(&standard_tools(), &template) {
            let (document, _) = xml::read(&source);
            let tools =
                document.root().and_then(|root| document.children(root).find(|(_, it)| it.name == "tools"));
            let span = tools.map(|(_, tools)| tools.tag_span).unwrap_or_default();
            problems.push(Diagnostic::error("unknown-tool", &source, span, slip.message));
        }
        if template.is_default {
            let subtype = template.subtype().to_owned();
            let message =
                |first: &str| format!("the default of subtype `{subtype}` is also defined in {first}");
            match findings.defaults.get(&subtype) {
                Some(first) => {
                    let problem = at_attribute("duplicate-default", "default", &source, message(first));
                    problems.push(problem.help("mark only one of them as default"));
                }
                None => _ = findings.defaults.insert(subtype, name.to_owned()),
            }
        }
        match findings.templates.get(&template.name) {
            Some(first) => {
                let message = format!("template `{}` is also defined in {first}", template.name);
                let problem = at_attribute("duplicate-template", "name", &source, message);
                problems.push(problem.help("rename one of them"));
            }
            None => _ = findings.templates.insert(template.name, name.to_owned()),
        }
    }
    findings.add(problems, [source]);
}

/// An error at an attribute of the task.
fn at_attribute(code: &'static str, attribute: &str, source: &Source, message: String) -> Diagnostic {
    let (document, _) = xml::read(source);
    let task = document.root().map(|root| document.element(root));
    let span = task.and_then(|task| task.attribute(attribute)).map(|attribute| attribute.value_span);
    Diagnostic::error(code, source, span.unwrap_or_default(), message)
}

/// Context settings that conflict as written. A request may still override one of them, so the template is
/// registered anyway.
fn context_conflict(template: &Template, source: &Source) -> Option<Diagnostic> {
    let conflict = effective(template.subtype(), &template.context_management, None).err()?;
    let (document, _) = xml::read(source);
    let child = |parent, name: &str| document.children(parent).find(|(_, it)| it.name == name);
    let (block, element) = child(document.root()?, "context_management")?;
    let set = child(block, "fresh_context").or_else(|| child(block, "inherit_context"));
    let span = set.map_or(element.tag_span, |(_, element)| element.text_span());
    Some(Diagnostic::error("context-conflict", source, span, conflict.to_string()))
}
