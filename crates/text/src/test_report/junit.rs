//! JUnit XML, as pytest, surefire, jest-junit, gotestsum and many others write it.

use super::{TestFailure, TestLocation, TestReport};
use crate::Source;
use crate::xml::{ElementId, XmlContent, XmlDocument, read};

/// Maximum bytes of XML that are read.
const MAX_XML: usize = 4 << 20;

/// Reads the test suites in a text, which may contain other output around them.
pub(super) fn junit(output: &str) -> Option<TestReport> {
    let start = output.find("<testsuite")?;
    let end = output.rfind("</testsuite")?;
    let end = end + output.get(end..)?.find('>')? + 1;
    let xml = output.get(start..end).filter(|xml| xml.len() <= MAX_XML)?;
    let source = Source::new("junit.xml", xml);
    let (document, _) = read(&source);
    let mut report = TestReport { runner: "junit".into(), ..TestReport::default() };
    let mut waiting: Vec<ElementId> = document.root().into_iter().collect();
    let mut found = false;
    while let Some(id) = waiting.pop() {
        if document.element(id).name == "testcase" {
            found = true;
            add(&mut report, &document, id);
        } else {
            let mut children: Vec<ElementId> = document.children(id).map(|(child, _)| child).collect();
            children.reverse();
            waiting.extend(children);
        }
    }
    found.then_some(report)
}

fn add(report: &mut TestReport, document: &XmlDocument, case: ElementId) {
    let attribute = |id: ElementId, name: &str| {
        let attributes = &document.element(id).attributes;
        attributes.iter().find(|attribute| attribute.name == name).map(|attribute| attribute.value.clone())
    };
    let mut problem = None;
    for (child, _) in document.children(case) {
        match document.element(child).name.as_str() {
            "failure" | "error" => problem = problem.or(Some(child)),
            "skipped" => {
                report.skipped = report.skipped.saturating_add(1);
                return;
            }
            _ => {}
        }
    }
    let Some(problem) = problem else {
        report.passed = report.passed.saturating_add(1);
        return;
    };
    report.failed = report.failed.saturating_add(1);
    let name = attribute(case, "name").unwrap_or_default();
    let full = match attribute(case, "classname") {
        Some(class) if !class.is_empty() => format!("{class}.{name}"),
        _ => name,
    };
    let mut failure = TestFailure::new(&full);
    let text = document.element(problem).content.iter().find_map(|content| match content {
        XmlContent::Text { text, .. } => Some(text.trim().to_owned()),
        _ => None,
    });
    failure.message = attribute(problem, "message").or(text).unwrap_or_default();
    let line = attribute(case, "line").and_then(|line| line.parse().ok());
    if let (Some(path), Some(line)) = (attribute(case, "file"), line) {
        failure.location = Some(TestLocation { path, line });
    }
    report.failures.push(failure);
}
