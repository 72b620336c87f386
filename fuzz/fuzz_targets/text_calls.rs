//! Fuzzes parsing of tool calls in text: it never panics, and everything found occurs in the text.
#![no_main]

use fusee_model::text_calls;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let known = |name: &str| matches!(name, "read_file" | "shell");
    if let Some(found) = text_calls::find(text, &known) {
        assert!(found.text.len() + found.reasoning.len() <= text.len());
        for call in &found.calls {
            assert!(!call.name.is_empty() && text.contains(&call.name));
        }
    }
});
