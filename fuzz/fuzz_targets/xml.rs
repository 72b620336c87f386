//! Fuzzes the XML reader: spans lie within the text, and every diagnostic can be rendered.
#![no_main]

use fusee_text::Source;
use fusee_text::render::{Colour, json, terminal};
use fusee_text::xml::{XmlContent, decode, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = decode(bytes) else { return };
    let source = Source::new("fuzz", text.as_ref());
    let (document, problems) = read(&source);
    let mut waiting: Vec<_> = document.root().into_iter().collect();
    while let Some(id) = waiting.pop() {
        let element = document.element(id);
        waiting.extend(document.children(id).map(|(child, _)| child));
        assert_eq!(text.get(element.name_span.range()), Some(element.name.as_str()));
        for attribute in &element.attributes {
            assert!(text.get(attribute.value_span.range()).is_some());
        }
        for content in &element.content {
            if let XmlContent::Text { span, .. } = content {
                assert!(text.get(span.range()).is_some());
            }
        }
    }
    let problems = problems.into_sorted();
    assert!(!terminal(&problems, |_| Some(&source), Colour::Never).contains('\u{1b}'));
    let _ = json(&problems);
});
