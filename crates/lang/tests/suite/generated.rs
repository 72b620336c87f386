//! Programs generated from random bytes: the machine agrees with the naive evaluator on all of them, is
//! deterministic, and never panics on any input.

use fusee_lang::{EffectKind, EvaluationLimits, Machine, NoFiles, ResumeInput, Yield, compile};
use fusee_text::Source;
use fusee_text::sexpr::{layout, read};
use proptest::prelude::*;
use serde_json::Map as JsonMap;

use crate::naive;
use crate::world::{World, catalog};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Int,
    List,
    Function,
}

/// Generates well-formed programs, with choices taken from the given bytes; without bytes it generates
/// leaves.
struct Writer<'b> {
    bytes: std::slice::Iter<'b, u8>,
    names: usize,
    known: Vec<(String, Kind)>,
    /// First index in `known` that may be changed: inside an element of `pmap`, outer variables may not.
    changeable_from: usize,
}

impl Writer<'_> {
    fn pick(&mut self, count: u8) -> u8 {
        self.bytes.next().map_or(0, |byte| byte % count)
    }

    fn fresh(&mut self, kind: Kind) -> String {
        self.names += 1;
        // Names are reused, so that inner ones shadow outer ones.
        let name = format!("{}{}", ["n", "l", "f"][kind as usize], self.names % 5);
        self.known.push((name.clone(), kind));
        name
    }

    fn any(&mut self, kind: Kind) -> Option<String> {
        let choice = self.pick(255) as usize;
        // A function from outside may change a variable that an element of `pmap` may not, which the machine
        // rejects.
        let from = if kind == Kind::Function { self.changeable_from } else { 0 };
        let visible = self.visible(kind, from);
        visible.get(choice % visible.len().max(1)).cloned()
    }

    /// Names of a kind, declared at `from` or later, that are not shadowed by a later declaration.
    fn visible(&self, kind: Kind, from: usize) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for (index, (name, known)) in self.known.iter().enumerate() {
            let hidden = self.known[index + 1..].iter().any(|(later, _)| later == name);
            if *known == kind && !hidden && index >= from && !found.contains(name) {
                found.push(name.clone());
            }
        }
        found
    }

    fn scoped<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let height = self.known.len();
        let value = body(self);
        self.known.truncate(height);
        value
    }

    fn lambda(&mut self, param: Kind, body: fn(&mut Self, usize) -> String, depth: usize) -> String {
        self.scoped(|writer| {
            let name = writer.fresh(param);
            format!("(lambda ({name}) {})", body(writer, depth))
        })
    }

    fn int(&mut self, depth: usize) -> String {
        if depth == 0 {
            let literal = i64::from(self.pick(20)) - 5;
            return self.any(Kind::Int).unwrap_or_else(|| literal.to_string());
        }
        let d = depth - 1;
        match self.pick(24) {
            0 => [0, 1, 2, -7, 40, 3, 5, i64::MAX, i64::MIN][self.pick(9) as usize].to_string(),
            1 => self.int(0),
            2 => format!("(+ {} {})", self.int(d), self.int(d)),
            3 => format!("(- {} {})", self.int(d), self.int(d)),
            4 => format!("(* {} {})", self.int(d), self.int(0)),
            5 => format!("(if {} {} {})", self.bool(d), self.int(d), self.int(d)),
            6 => {
                let value = self.int(d);
                self.scoped(|w| {
                    let name = w.fresh(Kind::Int);
                    format!("(let (({name} {value})) {})", w.int(d))
                })
            }
            7 => match self.any(Kind::Function) {
                Some(function) => format!("({function} {})", self.int(d)),
                None => self.int(d),
            },
            8 => format!("(length {})", self.list(d)),
            9 => {
                let list = self.list(d);
                let start = self.int(0);
                self.scoped(|w| {
                    let (one, two) = (w.fresh(Kind::Int), w.fresh(Kind::Int));
                    let body = w.int(d);
                    if one == two {
                        "0".to_owned()
                    } else {
                        format!("(reduce (lambda ({one} {two}) {body}) {start} {list})")
                    }
                })
            }
            10 => self.change(d),
            11 => {
                let body = self.int(d);
                format!("(try {body} (catch (e) {}))", self.int(d))
            }
            12 => {
                let turns = self.pick(6);
                self.scoped(|w| {
                    let param = w.fresh(Kind::Int);
                    let body = w.int(d);
                    format!("(letrec ((go (lambda (k) (if (< k 1) 0 (+ (let (({param} k)) {body}) (go (- k 1))))))) (go {turns}))")
                })
            }
            13 => format!("(first {})", self.list(d)),
            14 => format!(
                "(cond ({} {}) ({} {}) (else {}))",
                self.bool(d),
                self.int(d),
                self.bool(d),
                self.int(d),
                self.int(d)
            ),
            15 => format!("(progn (log-message {}) {})", self.int(d), self.int(d)),
            16 => {
                let value = self.int(d);
                format!("({} {value})", self.lambda(Kind::Int, Self::int, d))
            }
            17 if self.pick(4) == 0 => "(raise \"no\")".to_owned(),
            18 => format!("(nth {} {})", self.list(d), self.int(0)),
            19 => {
                let body = self.int(d);
                format!("(try {body} (finally (log-message {})))", self.int(d))
            }
            20 => {
                let value = self.int(d);
                let (one, other) = (self.int(d), self.int(0));
                self.scoped(|w| {
                    let name = w.fresh(Kind::Int);
                    format!("(match (list 'tag {value}) ((other _) {one}) ((tag 3) {other}) ((tag {name}) {}) (_ 0))", w.int(d))
                })
            }
            21 => {
                let value = self.int(d);
                self.scoped(|w| {
                    let name = w.fresh(Kind::Int);
                    let other = w.int(d);
                    let second = w.fresh(Kind::Int);
                    format!("(let* (({name} {value}) ({second} {other})) {})", w.int(d))
                })
            }
            22 => format!("(loop {} {})", self.pick(4), self.change(d)).replace("(loop 0", "(loop 1"),
            _ => {
                let function = self.lambda(Kind::Int, Self::int, d);
                self.scoped(|w| {
                    let name = w.fresh(Kind::Function);
                    format!("(let (({name} {function})) {})", w.int(d))
                })
            }
        }
    }

    /// An assignment, if there is a variable that may be changed.
    fn change(&mut self, depth: usize) -> String {
        let names = self.visible(Kind::Int, self.changeable_from);
        let choice = self.pick(255) as usize;
        let value = self.int(depth);
        match names.get(choice % names.len().max(1)) {
            Some(name) => format!("(set! {name} {value})"),
            None => value,
        }
    }

    fn bool(&mut self, depth: usize) -> String {
        if depth == 0 {
            return ["true", "false", "nil"][self.pick(3) as usize].to_owned();
        }
        let d = depth - 1;
        match self.pick(8) {
            0 => format!("(< {} {})", self.int(d), self.int(d)),
            1 => format!("(>= {} {})", self.int(d), self.int(0)),
            2 => format!("(= {} {})", self.list(d), self.list(d)),
            3 => format!("(and {} {})", self.bool(d), self.bool(d)),
            4 => format!("(or {} {})", self.bool(d), self.bool(d)),
            5 => format!("(not {})", self.bool(d)),
            6 => {
                let list = self.list(d);
                let which = if self.pick(2) == 0 { "any?" } else { "all?" };
                format!("({which} {} {list})", self.lambda(Kind::Int, Self::bool, d))
            }
            _ => format!("(= {} {})", self.int(d), self.int(d)),
        }
    }

    fn list(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.any(Kind::List).unwrap_or_else(|| "(list 3 1 4 2)".to_owned());
        }
        let d = depth - 1;
        match self.pick(12) {
            0 => format!("(list {} {})", self.int(d), self.int(d)),
            1 => format!("(cons {} {})", self.int(d), self.list(d)),
            2 | 3 => {
                let list = self.list(d);
                format!("(map {} {list})", self.lambda(Kind::Int, Self::int, d))
            }
            4 => {
                let list = self.list(d);
                format!("(filter {} {list})", self.lambda(Kind::Int, Self::bool, d))
            }
            5 => format!("(rest {})", self.list(d)),
            6 => format!("(append {} {})", self.list(d), self.list(d)),
            7 => format!("(range 0 {})", self.pick(8)),
            8 => format!("(reverse {})", self.list(d)),
            9 => format!("(sort {})", self.list(d)),
            10 => {
                let list = self.list(d);
                let before = std::mem::replace(&mut self.changeable_from, self.known.len());
                let function = self.lambda(Kind::Int, Self::int, d);
                self.changeable_from = before;
                format!("(pmap {function} {list})")
            }
            _ => self.list(0),
        }
    }

    fn program(&mut self) -> String {
        let mut text = String::new();
        for index in 0..self.pick(4) {
            let value = self.int(2);
            // Top-level names are unique, since defining one twice is an error.
            let name = format!("top{index}");
            text.push_str(&format!("(define {name} {value})\n"));
            self.known.push((name, Kind::Int));
        }
        if self.pick(2) == 1 {
            let function = self.scoped(|w| {
                let param = w.fresh(Kind::Int);
                format!("(defun helper ({param}) (define own {}) {})", w.int(2), w.int(3))
            });
            text.push_str(&format!("{function}\n"));
            self.known.push(("helper".to_owned(), Kind::Function));
        }
        let depth = 3 + usize::from(self.pick(3));
        text + &format!("(list {} {} {})", self.int(depth), self.list(depth), self.bool(depth))
    }
}

fn program_of(bytes: &[u8]) -> String {
    Writer { bytes: bytes.iter(), names: 0, known: Vec::new(), changeable_from: 0 }.program()
}

/// The outcome of the machine and the messages it logged, in order.
fn machine(text: &str) -> (String, Vec<String>) {
    let mut world = World::default();
    let compiled = world.compile(text);
    let problems = compiled.diagnostics.clone().into_sorted();
    let program = compiled.program.unwrap_or_else(|| panic!("{problems:#?}\n{text}"));
    let outcome = match world.run(&program, &JsonMap::new(), EvaluationLimits::default()) {
        Ok(value) => value.display(1_000_000),
        Err(fault) if fault.code == "limit-reached" => panic!("{fault}\n{text}"),
        Err(_) => "failed".to_owned(),
    };
    let logged =
        world.effects.iter().filter_map(|line| Some(line.split_once("log ")?.1.to_owned())).collect();
    (outcome, logged)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_agrees_with_the_naive_evaluator(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
        let text = program_of(&bytes);
        let (tree, problems) = read(&Source::new("t", text.as_str()));
        prop_assert!(problems.is_empty());
        let (value, logged) = naive::evaluate(&tree);
        let expected = value.map_or("failed".to_owned(), |value| value.show());
        let (outcome, logged_by_machine) = machine(&text);
        prop_assert_eq!(&outcome, &expected, "{}", text);
        prop_assert_eq!(&logged_by_machine, &logged, "{}", text);
        prop_assert_eq!(machine(&text), (outcome.clone(), logged_by_machine), "not the same again");
        let laid_out = layout(&tree, &fusee_lang::indent);
        prop_assert_eq!(machine(&laid_out).0, outcome, "laying out changed it:\n{}", laid_out);
    }

    #[test]
    fn whatever_is_written_is_checked_without_a_panic(words in prop::collection::vec(word(), 0..60)) {
        let text = words.join(" ");
        let compiled = compile(&Source::new("t", text.as_str()), &catalog(), &mut NoFiles);
        if let Some(program) = compiled.program {
            let limits = EvaluationLimits { steps: 5_000, depth: 100, memory: 4_000_000, slice: 500 };
            let Ok(mut machine) = Machine::start(&program, &JsonMap::new(), limits) else { return Ok(()) };
            let mut input = ResumeInput::Go;
            for _ in 0..50 {
                input = match machine.resume(input) {
                    Yield::Done(value) => {
                        let _ = (value.display(100), value.to_json());
                        break;
                    }
                    Yield::Fault(fault) => {
                        let _ = (fault.to_string(), fault.to_json());
                        break;
                    }
                    Yield::Pause => ResumeInput::Go,
                    Yield::Effect(effect) => match effect.kind {
                        EffectKind::FanOut(_) => ResumeInput::Go,
                        kind => World::default().answer(kind, ""),
                    },
                };
            }
        }
    }
}

/// Words of the language in random order, with enough parentheses to produce forms.
fn word() -> impl Strategy<Value = String> {
    let names: Vec<String> =
        fusee_lang::SpecialForm::all().iter().map(|form| format!("({}", form.name)).collect();
    let library: Vec<String> =
        fusee_lang::Builtin::all().map(|builtin| format!("({}", builtin.name)).collect();
    prop_oneof![
        4 => prop::sample::select(names),
        3 => prop::sample::select(library),
        6 => Just(")".to_owned()),
        2 => Just("(".to_owned()),
        2 => prop::sample::select(vec!["x", "y", "e", "else", "_", "&", "echo", "(text", "(echo (text \"a\"))"]).prop_map(str::to_owned),
        2 => prop::sample::select(vec!["1", "0", "-3", "2.5", "\"s\"", "true", "nil", "'a", "'()", ":max", ":limit", ":backoff"]).prop_map(str::to_owned),
        1 => Just("((x 1))".to_owned()),
        1 => Just("(x)".to_owned()),
    ]
}

#[test]
fn the_generated_programs_are_not_all_alike() {
    // Most of the generated programs must do something, or the comparison above means little.
    let mut outcomes = std::collections::HashSet::new();
    let mut failed = 0;
    for seed in 0..400_u64 {
        let bytes: Vec<u8> = (0..120)
            .scan(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, |state, _| {
                *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                Some((*state >> 33) as u8)
            })
            .collect();
        let (outcome, _) = machine(&program_of(&bytes));
        failed += usize::from(outcome == "failed");
        outcomes.insert(outcome);
    }
    assert!(outcomes.len() > 150 && failed < 200, "{} different outcomes, {failed} fail", outcomes.len());
}
