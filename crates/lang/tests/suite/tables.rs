//! The tables of forms and functions are complete, free of duplicates, and covered by the manual.

use std::collections::HashSet;
use std::path::Path;

use fusee_lang::{Builtin, SpecialForm, indent};

/// All names that the language promises.
const PROMISED: &str = "let let* letrec bind define set! lambda defun if cond when unless and or not match progn begin loop
    while for-each map filter reduce pmap call call-atomic-task atomic-task direct-tool defatom get-context get_context spawn
    director-evaluator-loop iterative-loop try catch finally raise retry assert with-limits ask-user log-message range nth get
    get-in get-field dict string-append string-join string-split string-trim string-replace string-contains?
    string-starts-with? string-upper string-lower format + - * / < <= > >= = eq? equal? string=? list cons first rest length
    append reverse sort zip any? all? put merge keys values json-parse json-encode content parsed ok? error-reason exit-code
    params load quote";

fn names() -> Vec<&'static str> {
    SpecialForm::all()
        .iter()
        .map(|form| form.name)
        .chain(Builtin::all().map(|builtin| builtin.name))
        .collect()
}

#[test]
fn every_promised_name_is_there() {
    let known: HashSet<&str> = names().into_iter().collect();
    let missing: Vec<&str> = PROMISED.split_whitespace().filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn no_name_is_there_twice() {
    let mut seen = HashSet::new();
    let twice: Vec<&str> = names().into_iter().filter(|name| !seen.insert(*name)).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn every_entry_says_how_it_looks_and_what_it_does() {
    for (name, signature, doc) in SpecialForm::all()
        .iter()
        .map(|form| (form.name, form.signature, form.doc))
        .chain(Builtin::all().map(|builtin| (builtin.name, builtin.signature, builtin.doc)))
    {
        assert!(signature.starts_with(&format!("({name}")), "{name}: {signature}");
        assert!(doc.ends_with(['.', '…', '}']) && doc.len() > 5, "{name}: {doc}");
        assert!(indent(name).is_some(), "{name} has no layout");
    }
}

#[test]
fn every_name_is_used_in_the_manual() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/language");
    let pages: String = std::fs::read_dir(folder)
        .unwrap()
        .map(|page| std::fs::read_to_string(page.unwrap().path()).unwrap())
        .collect();
    let words: HashSet<&str> = pages.split(|c: char| c.is_whitespace() || "()`'\",".contains(c)).collect();
    let missing: Vec<&str> = names().into_iter().filter(|name| !words.contains(name)).collect();
    assert!(missing.is_empty(), "not in spec/language: {missing:?}");
}

#[test]
fn the_grammar_for_editors_knows_every_form() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors/fusee.tmLanguage.json");
    let grammar: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let patterns = grammar["repository"]["expression"]["patterns"].as_array().unwrap();
    let keywords = patterns
        .iter()
        .filter_map(|pattern| pattern["match"].as_str())
        .max_by_key(|text| text.len())
        .unwrap();
    let known: HashSet<String> = keywords.split(['(', ')', '|']).map(|word| word.replace('\\', "")).collect();
    let missing: Vec<&str> =
        SpecialForm::all().iter().map(|form| form.name).filter(|name| !known.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
