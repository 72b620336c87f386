//! Fuzzes the workflow checker: it never panics, and every diagnostic points into the text.
#![no_main]

use fusee_lang::{Callable, Catalog, NoFiles, Param, ParamType, compile};
use fusee_text::Source;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut catalog = Catalog::new();
    catalog.add(Callable::task("echo", [Param::required("text", ParamType::String)]));
    catalog.add(Callable::tool("shell", [Param::required("command", ParamType::String)]));
    let compiled = compile(&Source::new("fuzz", text), &catalog, &mut NoFiles);
    let errors = compiled.diagnostics.has_errors();
    assert_eq!(compiled.program.is_none(), errors);
    for problem in compiled.diagnostics.into_sorted() {
        assert!(text.get(problem.span.range()).is_some());
        assert!(!problem.message.is_empty());
    }
    if let Some(program) = compiled.program {
        assert!(program.calls().all(|call| text.get(call.location.span.range()).is_some()));
    }
});
