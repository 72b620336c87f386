//! Fuzzes templates: any bytes are either a valid template or give diagnostics that point into the text. A
//! valid template can be filled or reports missing values, and parses to the same template again.
#![no_main]

use fusee_engine::template::Template;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

fuzz_target!(|bytes: &[u8]| {
    let (template, source, problems) = Template::from_bytes("fuzz.xml", bytes);
    assert_eq!(template.is_none(), problems.has_errors());
    for problem in problems.into_sorted() {
        assert!(source.text().get(problem.span.range()).is_some());
        assert!(!problem.message.is_empty());
    }
    let Some(template) = template else { return };
    assert_eq!(Template::read(&source).0.as_ref(), Some(&template));
    let inputs: Map<String, Value> =
        template.inputs.iter().map(|input| (input.name.clone(), "{{x}}".into())).collect();
    if let Err(missing) = template.filled(&inputs) {
        assert!(!missing.is_empty());
    }
});
