//! Fuzzes the S-expression reader and formatter: spans lie within the text, and formatting valid text is
//! idempotent.
#![no_main]

use fusee_text::Source;
use fusee_text::render::{Colour, json, terminal};
use fusee_text::sexpr::{layout, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let source = Source::new("fuzz", text);
    let (tree, problems) = read(&source);
    for node in tree.all() {
        assert!(text.get(tree.span(node).range()).is_some());
        let _ = tree.text(node);
    }
    let clean = problems.is_empty();
    let problems = problems.into_sorted();
    let shown = terminal(&problems, |_| Some(&source), Colour::Never);
    assert!(!shown.contains('\u{1b}'));
    let _ = json(&problems);
    let once = layout(&tree, &fusee_lang::indent);
    if clean {
        let (again, problems) = read(&Source::new("again", once.as_str()));
        assert!(problems.is_empty(), "laid out, it reads differently: {once:?}");
        assert_eq!(again.len(), tree.len());
        assert_eq!(layout(&again, &fusee_lang::indent), once);
    }
});
