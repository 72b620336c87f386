//! The checker's diagnostics as terminal output and as JSON for editors.

use fusee_lang::{Catalog, NoFiles, compile};
use fusee_text::Source;
use fusee_text::render::{Colour, json, terminal};
use insta::assert_snapshot;

use crate::world::World;

const WRONG: &str = "(defun review (file)\n  (summarise (text file)))\n(while (ok? x) (reveiw))\n";

#[test]
fn people_see_the_line_and_a_caret() {
    let compiled = World::default().compile(WRONG);
    assert!(compiled.program.is_none());
    let source = compiled.sources.first();
    assert_snapshot!(terminal(&compiled.diagnostics.into_sorted(), |_| source, Colour::Never), @r"
    error[unknown-task]: unknown task or tool `summarise`
     --> example.fusee:2:4
      |
    2 |   (summarise (text file)))
      |    ^^^^^^^^^
      |
      = help: did you mean `summarize`?

    error[while-without-max]: `while` needs `:max`
     --> example.fusee:3:1
      |
    3 | (while (ok? x) (reveiw))
      | ^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: set the maximum number of iterations: (while test :max 100 body …)

    error[unbound-name]: `x` is not bound
     --> example.fusee:3:13
      |
    3 | (while (ok? x) (reveiw))
      |             ^

    error[unbound-name]: `reveiw` is not bound: no function, task or tool has this name
     --> example.fusee:3:17
      |
    3 | (while (ok? x) (reveiw))
      |                 ^^^^^^
      |
      = help: did you mean `review`?

    4 errors
    ");
}

#[test]
fn editors_get_json() {
    let compiled = World::default().compile(WRONG);
    let text = json(&compiled.diagnostics.into_sorted());
    assert_snapshot!(text.replace("},{", "},\n{"), @r#"
    [{"code":"unknown-task","severity":"error","message":"unknown task or tool `summarise`","file":"example.fusee","line":2,"column":4,"end_line":2,"end_column":13,"help":"did you mean `summarize`?"},
    {"code":"while-without-max","severity":"error","message":"`while` needs `:max`","file":"example.fusee","line":3,"column":1,"end_line":3,"end_column":25,"help":"set the maximum number of iterations: (while test :max 100 body …)"},
    {"code":"unbound-name","severity":"error","message":"`x` is not bound","file":"example.fusee","line":3,"column":13,"end_line":3,"end_column":14},
    {"code":"unbound-name","severity":"error","message":"`reveiw` is not bound: no function, task or tool has this name","file":"example.fusee","line":3,"column":17,"end_line":3,"end_column":23,"help":"did you mean `review`?"}]
    "#);
}

#[test]
fn nothing_but_space_and_comments_is_a_workflow_that_gives_nil() {
    let source = Source::new("empty.fusee", "; nothing\n\n");
    let compiled = compile(&source, &Catalog::new(), &mut NoFiles);
    let mut world = World::default();
    let value = world.run(
        &compiled.program.unwrap(),
        &serde_json::Map::new(),
        fusee_lang::EvaluationLimits::default(),
    );
    assert_eq!(value.unwrap().display(10), "nil");
}

#[test]
fn a_workflow_is_laid_out_by_its_forms() {
    let text = "(params (files array :doc \"what to review\") (limit number :default 8)) ; called with\n(defatom review (params (file string)) (instructions \"Review {{file}} and list what is wrong with it.\") (output_format ((type \"json\"))))\n\n(define findings (pmap (lambda (file) (retry 3 :backoff 2 (review (file file) (files (list file))))) files :limit limit))\n(try (while (any? ok? findings) :max 10 (set! findings (rest findings)) (log-message \"left\" (length findings))) (catch (e) (log-message (get e \"message\")) nil) (finally (log-message \"done\")))";
    let laid_out = fusee_lang::format(&Source::new("w.fusee", text)).unwrap();
    assert_snapshot!(laid_out, @r#"
    (params (files array :doc "what to review") (limit number :default 8)) ; called with
    (defatom review
      (params (file string))
      (instructions "Review {{file}} and list what is wrong with it.")
      (output_format ((type "json"))))

    (define findings
      (pmap (lambda (file) (retry 3 :backoff 2 (review (file file) (files (list file)))))
            files
            :limit limit))
    (try
      (while (any? ok? findings) :max 10
        (set! findings (rest findings))
        (log-message "left" (length findings)))
      (catch (e) (log-message (get e "message")) nil)
      (finally (log-message "done")))
    "#);
    assert_eq!(fusee_lang::format(&Source::new("w.fusee", laid_out.as_str())).unwrap(), laid_out);
    let problems = fusee_lang::format(&Source::new("w.fusee", "(a")).unwrap_err();
    assert_eq!(problems.into_sorted()[0].code, "unclosed-list");
}
