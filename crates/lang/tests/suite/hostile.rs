//! Programs designed to crash, hang or exhaust memory, each with a defined outcome. All of them run on a
//! small stack, so that recursion on the host's stack would overflow.

use std::time::{Duration, Instant};

use fusee_lang::{EvaluationLimits, Value};
use fusee_text::render::{Colour, terminal};
use serde_json::Map as JsonMap;

use crate::world::{Outcome, World};

const SMALL_STACK: usize = 512 * 1024;

/// Compiles and runs a program on a small stack; returns the value, fault or diagnostic codes as text.
fn outcome(text: String) -> String {
    within(EvaluationLimits::default(), text)
}

fn within(limits: EvaluationLimits, text: String) -> String {
    on_small_stack(move || match run(&text, limits) {
        Ok(Ok(value)) => value.display(200),
        Ok(Err(fault)) => format!("fault {}: {}", fault.code, fault.message),
        Err(codes) => format!("diagnostics {}", codes.join(" ")),
    })
}

fn on_small_stack<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(SMALL_STACK).spawn(body).unwrap().join().unwrap()
}

fn run(text: &str, limits: EvaluationLimits) -> Result<Outcome, Vec<&'static str>> {
    let mut world = World::default();
    let compiled = world.compile(text);
    match compiled.program {
        Some(program) => Ok(world.run(&program, &JsonMap::new(), limits)),
        None => {
            let problems = compiled.diagnostics.into_sorted();
            let shown = terminal(&problems, |_| compiled.sources.first(), Colour::Never);
            assert!(shown.len() < 2_000_000, "{} bytes of diagnostics", shown.len());
            let mut codes: Vec<&'static str> = problems.iter().map(|problem| problem.code).collect();
            codes.dedup();
            Err(codes)
        }
    }
}

fn nested(open: &str, inside: &str, close: &str, times: usize) -> String {
    format!("{}{inside}{}", open.repeat(times), close.repeat(times))
}

#[test]
fn two_hundred_thousand_open_parentheses() {
    assert_eq!(outcome("(".repeat(200_000)), "diagnostics unclosed-list empty-call");
}

#[test]
fn two_hundred_thousand_nested_lists_are_a_value() {
    let text = nested("(list ", "1", ")", 200_000);
    assert_eq!(outcome(text), format!("{}…", "(".repeat(200)));
}

#[test]
fn forms_nest_as_deep_as_they_are_written() {
    let times = 20_000;
    assert_eq!(outcome(nested("(if true ", "7", " 0)", times)), "7");
    assert_eq!(outcome(nested("(progn 1 ", "7", ")", times)), "7");
    assert_eq!(outcome(nested("(let ((x 1)) ", "x", ")", times)), "1");
    assert_eq!(outcome(nested("(+ 1 ", "0", ")", times)), "20000");
    assert_eq!(outcome(nested("(and ", "7", ")", times)), "7");
    assert_eq!(outcome(nested("(cond (true ", "7", "))", times)), "7");
    assert_eq!(outcome(nested("(try ", "7", " (finally 1))", times)), "7");
    assert_eq!(outcome(nested("(when true ", "7", ")", times)), "7");
    assert_eq!(outcome(format!("(length {})", nested("'(", "", ")", times))), "1");
    assert_eq!(outcome(nested("(loop 1 ", "7", ")", times)), "7");
    assert_eq!(outcome(nested("(match 1 (_ ", "7", "))", times)), "7");
}

#[test]
fn functions_nest_in_functions() {
    let text = format!("(define f {}) (function? f)", nested("(lambda (x) ", "x", ")", 20_000));
    assert_eq!(outcome(text), "true");
    // The innermost function captures a name through all the others.
    let text =
        format!("(let ((deep 9)) (define f {}) (function? f))", nested("(lambda () ", "deep", ")", 20_000));
    assert_eq!(outcome(text), "true");
}

#[test]
fn patterns_nest() {
    let pattern = nested("(list ", "x", ")", 20_000);
    let value = nested("(list ", "7", ")", 20_000);
    assert_eq!(outcome(format!("(match {value} ({pattern} x))")), "7");
}

#[test]
fn a_hundred_megabytes_of_string() {
    let text = format!("(string-length \"{}\")", "x".repeat(100_000_000));
    assert_eq!(outcome(text), "100000000");
}

#[test]
fn ten_million_items() {
    assert_eq!(outcome("(length (range 0 10000000))".into()), "10000000");
    assert_eq!(outcome("(nth (reverse (range 0 10000000)) 0)".into()), "9999999");
    assert_eq!(
        outcome("(reduce + 0 (range 0 10000000))".into()),
        "fault limit-reached: more than 10000000 steps without a task, tool call or other effect"
    );
}

#[test]
fn runaway_recursion_of_every_kind_raises() {
    let deep = "fault limit-reached: calls are nested deeper than 10000";
    assert_eq!(outcome("(defun f (n) (+ 1 (f n))) (f 0)".into()), deep);
    assert_eq!(outcome("(defun f (n) (+ 1 (g n))) (defun g (n) (+ 1 (f n))) (f 0)".into()), deep);
    assert_eq!(outcome("(defun f (n) (first (map f (list n)))) (f 0)".into()), deep);
    assert_eq!(outcome("(defun f (n) (try (f n) (finally 1))) (f 0)".into()), deep);
    assert_eq!(outcome("(letrec ((f (lambda (n) (cons n (f n))))) (f 0))".into()), deep);
}

#[test]
fn runaway_loops_of_every_kind_end() {
    // The manual has an example that uses the default limit of ten million steps.
    let steps = "fault limit-reached: more than 300000 steps without a task, tool call or other effect";
    let few = |text: &str| {
        within(EvaluationLimits { steps: 300_000, ..EvaluationLimits::default() }, text.to_owned())
    };
    assert_eq!(few("(defun f (n) (f n)) (f 0)"), steps);
    assert_eq!(few("(letrec ((f (lambda (n) (f n)))) (f 0))"), steps);
    assert_eq!(few("(defun f (n) (try (raise \"x\") (catch (e) (f n)))) (f 0)"), steps);
    assert_eq!(few("(loop 100000000 1)"), steps);
    assert_eq!(few("(while true :max 100000000 1)"), steps);
    assert_eq!(few("(loop 1000000 (range 0 1000))"), steps);
    assert_eq!(few("(map (lambda (n) (length (range 0 n))) (range 0 100000))"), steps);
    assert_eq!(few("(sort (range 0 100000) (lambda (a b) (> a b)))"), steps);
    assert_eq!(
        few("(define s \"x\") (loop 16 (set! s (string-append s s))) (loop 10000 (string-upper s))"),
        steps
    );
}

/// Runs with a limit of 16 MiB, which behaves like the default but is reached sooner.
fn small(text: &str) -> String {
    within(EvaluationLimits { memory: 16 * 1024 * 1024, ..EvaluationLimits::default() }, text.to_owned())
}

#[test]
fn growth_of_every_kind_ends() {
    let memory = "fault limit-reached: the workflow uses more than 16777216 bytes of memory";
    assert_eq!(small("(range 0 9223372036854775807)"), memory);
    assert_eq!(small("(define s \"x\") (loop 60 (set! s (string-append s s)))"), memory);
    assert_eq!(small("(define l (list 1)) (loop 60 (set! l (append l l)))"), memory);
    assert_eq!(small("(define s \"x\") (loop 60 (set! s (string-replace s \"x\" \"xx\")))"), memory);
    assert_eq!(small("(define l (list)) (loop 1000 (set! l (cons (range 0 10000) l)))"), memory);
    assert_eq!(small("(define l (list)) (loop 1000000 (set! l (cons 1 l)))"), memory);
    assert_eq!(
        small(
            "(define m (dict)) (define i 0) (loop 100 (set! i (+ i 1)) (set! m (put m (to-string i) (range 0 50000))))"
        ),
        memory
    );
    assert_eq!(small("(define f nil) (loop 1000000 (let ((g f)) (set! f (lambda () g))))"), memory);
    assert_eq!(small("(length (map (lambda (n) (range 0 1000)) (range 0 2000)))"), memory);
    assert_eq!(
        small("(defun f (n) (let ((kept (range 0 1000))) (+ 1 (f (+ n (length kept)))))) (f 0)"),
        memory
    );
    assert_eq!(
        small(
            "(json-parse (string-append \"[\" (string-join (map to-string (range 0 200000)) \",\") \"]\"))"
        ),
        memory
    );
}

#[test]
fn garbage_is_not_growth() {
    assert_eq!(small("(loop 100 (length (range 0 100000)))"), "100000");
    let text =
        "(loop 20 (string-length (string-append (string-join (map to-string (range 0 20000))) \"x\")))";
    assert_eq!(small(text), "88891");
    assert_eq!(small("(define l (list)) (loop 100000 (set! l (cons 1 (list 2 3)))) (length l)"), "3");
}

#[test]
fn shared_structure_that_unfolds_without_end() {
    let build = "(define x (list 1)) (define y (list 1)) (loop 100 (set! x (list x x)) (set! y (list y y)))";
    let steps = "fault limit-reached: more than 100000 steps without a task, tool call or other effect";
    let few = EvaluationLimits { steps: 100_000, ..EvaluationLimits::default() };
    assert_eq!(within(few, format!("{build} (= x y)")), steps);
    assert_eq!(outcome(format!("{build} (= x x)")), "true");
    assert_eq!(outcome(format!("{build} (length x)")), "2");
    let shown = outcome(format!("{build} x"));
    assert!(shown.starts_with(&format!("{}1) (1))", "(".repeat(101))) && shown.ends_with('…'), "{shown}");
    let too_large = "fault limit-reached: the value is too large to convert to JSON";
    assert_eq!(outcome(format!("{build} (json-encode x)")), too_large);
    assert_eq!(outcome(format!("{build} (echo (text x))")), too_large);
    let text = format!("{build} (to-string x)");
    assert_eq!(small(&text), "fault limit-reached: the value takes more than 4194304 bytes as text");
}

#[test]
fn values_nested_hundreds_of_thousands_deep() {
    let build = "(define x (list)) (define y (list)) (loop 300000 (set! x (list x)) (set! y (list y)))";
    assert_eq!(outcome(format!("{build} (= x y)")), "true");
    assert_eq!(
        outcome(format!("{build} (json-encode x)")),
        "fault not-data: the value is nested deeper than 127 levels"
    );
    assert_eq!(outcome(format!("{build} (string-length (to-string x))")), "600002");
    let maps = "(define x (dict)) (loop 100000 (set! x (dict \"k\" x)))";
    assert_eq!(outcome(format!("{maps} (length x)")), "1");
    let functions = "(define f (lambda () 1)) (loop 100000 (let ((g f)) (set! f (lambda () g))))";
    assert_eq!(outcome(format!("{functions} (function? f)")), "true");
    let errors = "(define e nil) (loop 30000 (try (raise (list e)) (catch (x) (set! e x))))";
    assert_eq!(outcome(format!("{errors} (error? e)")), "true");
    let chain = "(define x (list)) (loop 300000 (set! x (cons 1 x)))";
    assert_eq!(outcome(format!("{chain} (list (length x) (nth x 299999))")), "(300000 1)");
}

#[test]
fn variables_that_hold_each_other_are_freed() {
    // All knots of about a kilobyte together exceed the memory limit.
    let text = "(define big (string-join (map to-string (range 0 300)) \"-\"))
        (defun knot (n)
          (define one nil) (define two nil)
          (set! one (lambda () (list two (string-append big (to-string n)))))
          (define kept (string-append big (to-string n)))
          (set! two (lambda () (list one kept)))
          (length (two)))
        (define i 0)
        (loop 40000 (set! i (+ i 1)) (knot i))
        i";
    assert_eq!(small(text), "40000");
}

#[test]
fn ten_thousand_names() {
    let defines: String = (0..10_000).map(|n| format!("(define name-{n} {n})\n")).collect();
    let sum: String = (0..10_000).map(|n| format!(" name-{n}")).collect();
    assert_eq!(outcome(format!("{defines} (+{sum})")), "49995000");
    let functions: String = (0..10_000).map(|n| format!("(defun f{n} (x) (f{} x))\n", n + 1)).collect();
    assert_eq!(outcome(format!("{functions} (defun f10000 (x) x) (f0 7)")), "7");
    let bindings: String = (0..10_000).map(|n| format!("(name-{n} {n})")).collect();
    assert_eq!(outcome(format!("(let ({bindings}) (+{sum}))")), "49995000");
    let locals: String = (0..10_000).map(|n| format!("(define name-{n} {n})")).collect();
    assert_eq!(outcome(format!("(defun f () {locals} (lambda () (+{sum}))) ((f))")), "49995000");
}

#[test]
fn a_hundred_thousand_arguments() {
    let items = "1 ".repeat(100_000);
    assert_eq!(outcome(format!("(length (list {items}))")), "100000");
    assert_eq!(outcome(format!("(defun f (x) x) (f {items})")), "diagnostics wrong-arity");
    assert_eq!(
        outcome(format!("(define f (first (list (lambda (x) x)))) (f {items})")),
        "fault wrong-arity: `lambda at 1:24` takes 1 argument, not 100000"
    );
}

#[test]
fn checking_takes_time_in_proportion_to_the_text() {
    // Inputs on which a checker that rescans scopes or bodies would take quadratic time.
    let unknown = nested("(lambda (x) (nope ", "1", "))", 20_000);
    let scopes = nested("(let ((a 1)) (define b 2) ", "b", ")", 20_000);
    let catches = nested("(try (first a) (catch (e) ", "e", "))", 20_000);
    let begun = Instant::now();
    assert_eq!(outcome(unknown), "diagnostics unbound-name too-many-problems");
    assert_eq!(outcome(scopes), "2");
    assert_eq!(outcome(catches), "diagnostics unbound-name too-many-problems");
    // Leaves a margin of ten even on a busy machine.
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn dropping_a_machine_in_the_middle_of_something_deep_is_fine() {
    on_small_stack(|| {
        let mut world = World::default();
        let text = "(define x (list)) (loop 500000 (set! x (list x))) (defun f (n) (if (= n 0) (ask-user \"now?\") (+ 1 (f (- n 1))))) (f 9000)";
        let program = world.compile(text).program.unwrap();
        let mut machine =
            fusee_lang::Machine::start(&program, &JsonMap::new(), EvaluationLimits::default()).unwrap();
        let mut pauses = 0;
        loop {
            match machine.resume(fusee_lang::ResumeInput::Go) {
                fusee_lang::Yield::Pause => pauses += 1,
                fusee_lang::Yield::Effect(effect) => {
                    assert_eq!(effect.kind.name(), "ask_user");
                    break;
                }
                _ => panic!("the program asks before it ends"),
            }
        }
        assert!(pauses > 0 && machine.depth() > 9000);
        drop(machine);
    });
}

#[test]
fn a_value_outlives_its_machine() {
    let value: Value = on_small_stack(|| {
        run("(list 1 \"two\" (dict \"k\" (list 'a)))", EvaluationLimits::default()).unwrap().unwrap()
    });
    assert_eq!(value.display(100), "(1 \"two\" (dict \"k\" (a)))");
}
