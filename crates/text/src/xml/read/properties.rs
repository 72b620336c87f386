//! Properties that hold for every input text.

use proptest::prelude::*;

use super::*;
use crate::render::{Colour, json, terminal};

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<a>".to_owned()),
        Just("</a>".to_owned()),
        Just("<b x=\"1\" y='2'/>".to_owned()),
        Just("<![CDATA[".to_owned()),
        Just("]]>".to_owned()),
        Just("<!--".to_owned()),
        Just("-->".to_owned()),
        Just("<!DOCTYPE [".to_owned()),
        Just("<?xml".to_owned()),
        Just("?>".to_owned()),
        Just("&lt;".to_owned()),
        Just("&#x1F600;".to_owned()),
        Just("&".to_owned()),
        "[<>&\"'=/ a-zé\u{1F600}\0\r\n]{0,6}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_text_is_read_to_its_end_with_spans_inside_it(text in pieces()) {
        let source = Source::new("p", text.as_str());
        let (document, problems) = read(&source);
        for element in &document.elements {
            prop_assert_eq!(text.get(element.name_span.range()), Some(element.name.as_str()));
            prop_assert!(text.get(element.tag_span.range()).is_some());
            for attribute in &element.attributes {
                prop_assert_eq!(text.get(attribute.name_span.range()), Some(attribute.name.as_str()));
                prop_assert!(text.get(attribute.value_span.range()).is_some());
            }
            for content in &element.content {
                if let XmlContent::Text { span, .. } = content {
                    prop_assert!(text.get(span.range()).is_some());
                }
            }
        }
        let problems = problems.into_sorted();
        let _ = terminal(&problems, |_| Some(&source), Colour::Never);
        let _ = json(&problems);
    }

    #[test]
    fn text_that_is_escaped_comes_back(text in "[^\r\0-\u{8}\u{b}\u{c}\u{e}-\u{1f}\u{fffe}\u{ffff}]{0,60}") {
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
        let source = Source::new("p", format!("<a v=\"{escaped}\">{escaped}</a>"));
        let (document, problems) = read(&source);
        prop_assert!(problems.is_empty());
        let root = document.root().unwrap();
        prop_assert_eq!(document.text(root), text.clone());
        let value = &document.element(root).attributes[0].value;
        prop_assert_eq!(value, &text.replace(['\n', '\t'], " "));
    }
}
