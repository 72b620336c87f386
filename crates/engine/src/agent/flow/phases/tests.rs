//! Phase transitions caused by facts and answers.

use fusee_tools::{ContentHash, FileChange, ToolOutput};

use super::*;
use crate::agent::flow::PhaseRules;

fn phases(mode: PhaseMode, states: &[&str], rules: PhaseRules) -> Phases {
    let states = states.iter().map(|state| (*state).to_owned()).collect();
    let phase_control = PhaseControl { mode, states, rules, ..PhaseControl::default() };
    Phases::begin(&FlowSettings { phase_control, ..FlowSettings::default() }).unwrap()
}

fn changed(content: &str) -> ToolOutput {
    let after = Some(ContentHash::of(content.as_bytes()));
    let change = FileChange { path: "a".to_owned(), before: None, after, mode: None };
    ToolOutput { changed: vec![change], ..ToolOutput::done("ok") }
}

fn describe(moved: Option<PhaseTransition>) -> String {
    moved.map_or_else(
        || "-".to_owned(),
        |PhaseTransition { from, to, reason }| format!("{from} -> {to}: {reason}"),
    )
}

const USUAL: &[&str] = &["context", "plan", "implement"];

#[test]
fn reading_planning_and_changing_lead_on_and_a_new_plan_leads_back() {
    let mut phases = phases(PhaseMode::Rules, USUAL, PhaseRules::default());
    let mut facts = Facts::default();
    let mut log = vec![describe(phases.follow(&facts))];
    facts.record_read("x");
    log.push(describe(phases.follow(&facts)));
    facts.record_plan();
    log.push(describe(phases.follow(&facts)));
    facts.record_call("write_file", &changed("one"));
    log.push(describe(phases.follow(&facts)));
    facts.record_plan();
    log.push(describe(phases.follow(&facts)));
    log.push(describe(phases.follow(&facts)));
    facts.record_call("write_file", &changed("two"));
    log.push(describe(phases.follow(&facts)));
    assert_eq!(
        log,
        [
            "-",
            "context -> plan: 1 file was read",
            "plan -> implement: a plan was made",
            "-",
            "implement -> plan: a new plan was made",
            "-",
            "plan -> implement: a file changed",
        ]
    );
}

#[test]
fn each_rule_can_be_turned_off() {
    let rules =
        PhaseRules { auto_plan_after_read: false, write_to_implement: false, ..PhaseRules::default() };
    let mut phases = phases(PhaseMode::Rules, USUAL, rules);
    let mut facts = Facts::default();
    facts.record_read("x");
    facts.record_call("write_file", &changed("one"));
    assert_eq!(describe(phases.follow(&facts)), "-");
    facts.record_plan();
    assert_eq!(describe(phases.follow(&facts)), "context -> implement: a plan was made");
    facts.record_plan();
    assert_eq!(describe(phases.follow(&facts)), "-");
}

#[test]
fn states_are_free_and_targets_map_the_rules_onto_them() {
    let mut four = phases(PhaseMode::Rules, &["a", "b", "c", "d"], PhaseRules::default());
    let mut facts = Facts::default();
    facts.record_read("x");
    assert_eq!(describe(four.follow(&facts)), "a -> c: 1 file was read");
    let targets = [("plan".to_owned(), "b".to_owned())].into();
    let rules = PhaseRules { min_files_read_for_plan: 2, targets, ..PhaseRules::default() };
    let mut named = phases(PhaseMode::Rules, &["a", "b", "c", "d"], rules);
    assert_eq!(describe(named.follow(&facts)), "-");
    facts.record_read("y");
    assert_eq!(describe(named.follow(&facts)), "a -> b: 2 files were read");
}

#[test]
fn reads_of_earlier_parts_count() {
    let rules = PhaseRules { min_files_read_for_plan: 2, ..PhaseRules::default() };
    let mut phases = phases(PhaseMode::Rules, USUAL, rules);
    let mut facts = Facts::default();
    facts.record_read("x");
    assert_eq!(describe(phases.follow(&facts)), "-");
    let mut next = phases.carried_over(&facts);
    let mut facts = Facts::default();
    facts.record_read("x");
    assert_eq!(describe(next.follow(&facts)), "-");
    facts.record_read("y");
    assert_eq!(describe(next.follow(&facts)), "context -> plan: 2 files were read");
}

#[test]
fn an_answer_names_one_phase_in_whatever_words() {
    let mut llm = phases(PhaseMode::Llm, USUAL, PhaseRules::default());
    let mut facts = Facts::default();
    facts.record_read("x");
    assert_eq!(describe(llm.follow(&facts)), "-", "rules say nothing where a model decides");
    let mut hear = |answer: &str| llm.answered(answer).map(describe);
    assert_eq!(hear(" Plan\n").unwrap(), "context -> plan: reported by the model");
    assert_eq!(hear("{\"phase\": \"implement\"}").unwrap(), "plan -> implement: reported by the model");
    assert_eq!(hear("It is in **implement** now.").unwrap(), "-");
    assert_eq!(
        hear("context or plan").unwrap_err(),
        "the answer \"context or plan\" names more than one of the phases context, plan, implement"
    );
    assert_eq!(hear("").unwrap_err(), "the answer \"\" names none of the phases context, plan, implement");
}

#[test]
fn in_hybrid_a_model_is_asked_only_where_the_rules_say_nothing() {
    let mut hybrid = phases(PhaseMode::Hybrid, USUAL, PhaseRules::default());
    let mut facts = Facts::default();
    hybrid.turn();
    assert!(hybrid.follow(&facts).is_none() && hybrid.asks());
    hybrid.turn();
    facts.record_read("x");
    assert!(hybrid.follow(&facts).is_some() && !hybrid.asks());
    hybrid.turn();
    assert!(hybrid.follow(&facts).is_none() && hybrid.asks());
}
