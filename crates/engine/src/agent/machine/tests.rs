//! Decisions of the turn machine, one behaviour per test.

use fusee_journal::event::{ErrorCode, ErrorDetail, Event};
use fusee_model::{ErrorKind, ModelError, Reply, StopReason, ToolCall, Usage};

use super::{
    Action, CallResults, CallVerdict, FinishCall, LimitUsage, Limits, TaskEnd, TurnEvent, TurnMachine,
};

const LOW: LimitUsage = LimitUsage { tokens: 100, active_ms: 0 };

fn turns(change: impl FnOnce(&mut Limits)) -> TurnMachine {
    let mut limits = Limits::default();
    change(&mut limits);
    TurnMachine::new(limits)
}

fn next(turns: &mut TurnMachine, input: TurnEvent, gauge: LimitUsage) -> (Action, Vec<Event>) {
    let mut warnings = Vec::new();
    let effect = turns.step(input, gauge, &mut warnings);
    (effect, warnings)
}

fn text(text: &str) -> TurnEvent {
    TurnEvent::Replied(Reply { text: text.to_owned(), ..Reply::default() })
}

fn calls(names: &[&str]) -> TurnEvent {
    let tool_calls = names
        .iter()
        .enumerate()
        .map(|(n, name)| ToolCall {
            id: format!("c{n}"),
            name: (*name).to_owned(),
            arguments: "{}".to_owned(),
        })
        .collect();
    TurnEvent::Replied(Reply { tool_calls, ..Reply::default() })
}

fn failure(kind: ErrorKind, after_ms: Option<u64>) -> TurnEvent {
    TurnEvent::Failed { error: ModelError::new(kind, "it broke"), after_ms }
}

fn failed(effect: Action) -> (ErrorDetail, bool) {
    match effect {
        Action::End(TaskEnd::Failed { error, unreachable }) => (error, unreachable),
        other => panic!("not a failure: {other:?}"),
    }
}

#[test]
fn words_without_a_call_end_the_task() {
    let mut turns = turns(|_| {});
    assert!(matches!(next(&mut turns, TurnEvent::Ready, LOW).0, Action::Ask { attempt: 1 }));
    let (effect, _) = next(&mut turns, text("All done."), LOW);
    assert!(matches!(effect, Action::End(TaskEnd::Completed { answer }) if answer == "All done."));
    assert_eq!(turns.turn_index(), 1);
}

#[test]
fn an_empty_reply_is_asked_for_again_once() {
    let mut turns = turns(|_| {});
    assert!(matches!(next(&mut turns, text("  \n"), LOW).0, Action::Say(_)));
    let (error, _) = failed(next(&mut turns, text(""), LOW).0);
    assert_eq!((error.code, error.reason.as_str()), (ErrorCode::TurnFailed, "llm_error"));
}

#[test]
fn a_reply_cut_by_its_length_is_asked_for_in_parts_once() {
    let mut turns = turns(|_| {});
    let cut =
        || TurnEvent::Replied(Reply { text: "half".into(), stop: StopReason::Length, ..Reply::default() });
    assert!(matches!(next(&mut turns, cut(), LOW).0, Action::Say(_)));
    assert!(failed(next(&mut turns, cut(), LOW).0).0.message.contains("twice"));
}

#[test]
fn a_refusal_is_a_failure_in_the_models_words() {
    let mut turns = turns(|_| {});
    let refusal = Reply { text: "I can't.".into(), stop: StopReason::Refusal, ..Reply::default() };
    assert_eq!(
        failed(next(&mut turns, TurnEvent::Replied(refusal), LOW).0).0.message,
        "the model declined: I can't."
    );
}

#[test]
fn retries_count_up_and_a_reply_starts_the_count_again() {
    let mut turns = turns(|_| {});
    assert!(matches!(
        next(&mut turns, failure(ErrorKind::Cut, Some(200)), LOW).0,
        Action::Rest { after_ms: 200 }
    ));
    assert!(matches!(next(&mut turns, TurnEvent::Rested, LOW).0, Action::Ask { attempt: 2 }));
    next(&mut turns, calls(&["a"]), LOW);
    assert!(matches!(
        next(&mut turns, TurnEvent::Answered(CallResults::default()), LOW).0,
        Action::Ask { attempt: 1 }
    ));
}

#[test]
fn a_model_that_stays_away_is_unreachable_and_one_that_refuses_is_not() {
    let unreachable = |kind| failed(next(&mut turns(|_| {}), failure(kind, None), LOW).0).1;
    assert!(unreachable(ErrorKind::Connect));
    assert!(!unreachable(ErrorKind::Auth));
}

#[test]
fn each_limit_ends_the_task_under_its_own_code() {
    let mut few = turns(|limits| limits.max_turns = 1);
    next(&mut few, calls(&["a"]), LOW);
    let (error, _) = failed(next(&mut few, TurnEvent::Answered(CallResults::default()), LOW).0);
    assert_eq!((error.code, error.reason.as_str()), (ErrorCode::MaxTurns, "turns"));

    let mut short = turns(|limits| limits.task_timeout_s = Some(2));
    let (error, _) = failed(next(&mut short, TurnEvent::Ready, LimitUsage { tokens: 1, active_ms: 2_000 }).0);
    assert_eq!((error.code, error.reason.as_str()), (ErrorCode::Timeout, "time"));

    let mut small = turns(|limits| limits.max_tokens = 1_000);
    let full = LimitUsage { tokens: 1_500, active_ms: 0 };
    assert!(matches!(next(&mut small, TurnEvent::Ready, full).0, Action::Compact));
    let (error, _) = failed(next(&mut small, TurnEvent::Compacted { smaller: false }, full).0);
    assert_eq!((error.code, error.reason.as_str()), (ErrorCode::TokenLimit, "context"));
}

#[test]
fn a_compaction_that_did_not_help_is_not_tried_again_until_the_context_has_grown() {
    let mut turns = turns(|limits| limits.max_tokens = 1_000);
    let at = |tokens| LimitUsage { tokens, active_ms: 0 };
    assert!(matches!(next(&mut turns, TurnEvent::Ready, at(800)).0, Action::Compact));
    assert!(matches!(
        next(&mut turns, TurnEvent::Compacted { smaller: false }, at(800)).0,
        Action::Ask { .. }
    ));
    assert!(matches!(next(&mut turns, TurnEvent::Ready, at(900)).0, Action::Ask { .. }));
    assert!(matches!(next(&mut turns, TurnEvent::Ready, at(1_001)).0, Action::Compact));
}

#[test]
fn an_overflow_compacts_and_asks_once_more() {
    let mut turns = turns(|_| {});
    assert!(matches!(next(&mut turns, failure(ErrorKind::Overflow, None), LOW).0, Action::Compact));
    assert!(matches!(next(&mut turns, TurnEvent::Compacted { smaller: true }, LOW).0, Action::Ask { .. }));
    let (error, _) = failed(next(&mut turns, failure(ErrorKind::Overflow, None), LOW).0);
    assert_eq!(error.code, ErrorCode::TokenLimit);
}

#[test]
fn limits_warn_once_at_four_fifths() {
    let mut turns = turns(|limits| limits.task_timeout_s = Some(10));
    let gauge = LimitUsage { tokens: 100, active_ms: 8_000 };
    let (_, warnings) = next(&mut turns, TurnEvent::Ready, gauge);
    let message = "used 8 of 10 seconds".to_owned();
    assert_eq!(warnings, [Event::Warning { code: "limit_time".into(), message }]);
    assert_eq!(next(&mut turns, TurnEvent::Rested, gauge).1, []);
}

#[test]
fn the_same_call_twice_in_one_reply_runs_once() {
    let mut turns = turns(|_| {});
    let Action::Call(planned) = next(&mut turns, calls(&["a", "b", "a"]), LOW).0 else { panic!("calls") };
    let verdicts: Vec<_> = planned.into_iter().map(|planned| planned.verdict).collect();
    assert_eq!(verdicts, [CallVerdict::Run, CallVerdict::Run, CallVerdict::Duplicate(0)]);
}

#[test]
fn going_in_circles_ends_the_task_after_its_calls_were_answered() {
    let mut turns = turns(|_| {});
    let mut verdicts = Vec::new();
    for _ in 0..5 {
        let Action::Call(planned) = next(&mut turns, calls(&["a"]), LOW).0 else { panic!("a call") };
        verdicts.push(planned[0].verdict.clone());
        if planned[0].verdict == CallVerdict::Run {
            turns.ran("same", false);
        }
        if verdicts.len() < 5 {
            let effect = next(&mut turns, TurnEvent::Answered(CallResults::default()), LOW).0;
            assert!(matches!(effect, Action::Ask { .. }));
        }
    }
    let circling = [3, 4, 5].map(CallVerdict::Circling);
    assert_eq!(verdicts[..2], [CallVerdict::Run, CallVerdict::Run]);
    assert_eq!(verdicts[2..], circling);
    let (error, _) = failed(next(&mut turns, TurnEvent::Answered(CallResults::default()), LOW).0);
    assert_eq!(error.reason, "execution_halted");
}

#[test]
fn finish_ends_the_task_with_its_summary_or_else_the_last_words() {
    let end = |blocked, summary: &str| {
        let mut turns = turns(|_| {});
        next(&mut turns, text(""), LOW);
        let with_words = Reply { text: "My words.".into(), tool_calls: vec![], ..Reply::default() };
        next(&mut turns, TurnEvent::Replied(with_words), LOW);
        let finished = Some(FinishCall { blocked, summary: summary.to_owned() });
        next(&mut turns, TurnEvent::Answered(CallResults { finished, aborted: false }), LOW).0
    };
    assert!(matches!(end(false, "Sum."), Action::End(TaskEnd::Completed { answer }) if answer == "Sum."));
    assert!(matches!(end(true, " "), Action::End(TaskEnd::Blocked { answer }) if answer == "My words."));
}

#[test]
fn cancelling_wins_over_everything() {
    let cancelled = |input| matches!(next(&mut turns(|_| {}), input, LOW).0, Action::End(TaskEnd::Cancelled));
    assert!(cancelled(TurnEvent::Cancelled));
    assert!(cancelled(failure(ErrorKind::Cancelled, None)));
    assert!(cancelled(TurnEvent::Answered(CallResults { finished: None, aborted: true })));
}

#[test]
fn usage_adds_up() {
    let mut turns = turns(|_| {});
    for _ in 0..2 {
        let usage = Some(Usage { input_tokens: 10, output_tokens: 3, ..Usage::default() });
        next(&mut turns, TurnEvent::Replied(Reply { text: "x".into(), usage, ..Reply::default() }), LOW);
    }
    assert_eq!((turns.usage.input_tokens, turns.usage.output_tokens), (20, 6));
}
