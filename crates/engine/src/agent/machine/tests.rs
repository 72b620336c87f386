//! Decisions of the turn machine, one behaviour per test.

use fusee_journal::event::{ErrorCode, ErrorDetail, Event};
use fusee_model::{ErrorKind, ModelError, Price, Reply, StopReason, ToolCall};

use super::{
    AcceptedAnswer, Action, AnswerRules, CallResults, CallVerdict, Conclusion, Feedback, FinishCall,
    LimitUsage, Limits, TaskEnd, TurnEvent, TurnMachine,
};

use crate::agent::limits::cost::Cost;

const NO_COST: Cost = Cost { usd: 0.0, longest_reply: 0 };
const LOW: LimitUsage = LimitUsage { tokens: 100, active_ms: 0, subtask_turns: 0, cost: NO_COST };

fn turns(change: impl FnOnce(&mut Limits)) -> TurnMachine {
    let mut limits = Limits::default();
    change(&mut limits);
    TurnMachine::new(limits, AnswerRules::default())
}

fn next(turns: &mut TurnMachine, input: TurnEvent, usage: LimitUsage) -> (Action, Vec<Event>) {
    let mut warnings = Vec::new();
    let mut action = turns.step(input, usage, &mut warnings);
    // The runtime's last actions do not change how a task ends.
    if let Action::Settle(end) = action {
        action = turns.step(TurnEvent::Settled(end), usage, &mut warnings);
    }
    (action, warnings)
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

fn rejected(kind: &'static str) -> TurnEvent {
    TurnEvent::Reviewed { rejected: Some(Feedback { text: "not yet".to_owned(), kind }), files: 1 }
}

fn checked(result: Result<&str, &str>) -> TurnEvent {
    let accepted = |answer: &str| AcceptedAnswer { answer: answer.to_owned(), fails_run: false };
    TurnEvent::Checked(result.map(accepted).map_err(str::to_owned))
}

fn answered(change: impl FnOnce(&mut CallResults)) -> TurnEvent {
    let mut results = CallResults::default();
    change(&mut results);
    TurnEvent::Answered(results)
}

fn finished(blocked: bool, summary: &str) -> TurnEvent {
    answered(|results| results.finished = Some(FinishCall { blocked, summary: summary.to_owned() }))
}

/// The last action after these events, in words.
fn last(turns: &mut TurnMachine, events: Vec<TurnEvent>) -> String {
    let mut said = String::new();
    for event in events {
        said = match next(turns, event, LOW).0 {
            Action::End(TaskEnd::Completed { answer }) => format!("completed: {answer}"),
            Action::End(TaskEnd::Cancelled) => "cancelled".to_owned(),
            Action::End(TaskEnd::Failed { error, .. }) => {
                format!("{:?} {}: {}", error.code, error.reason, error.message)
            }
            Action::Check { answer, last } => format!("check {answer} {last}"),
            Action::Correct { problem } => format!("correct: {problem}"),
            Action::Reject(Feedback { text, .. }) => format!("reject: {text}"),
            other => format!("{other:?}"),
        };
    }
    said
}

#[test]
fn every_end_is_decided_by_what_happened() {
    let reply = |text: &str, stop| TurnEvent::Replied(Reply { text: text.into(), stop, ..Reply::default() });
    let words = || text("My words.");
    let cut = || reply("half", StopReason::Length);
    let passed = || TurnEvent::Reviewed { rejected: None, files: 1 };
    let verified = || answered(|results| results.verified_by = Some("make test".to_owned()));
    let staged = |answer: &str| answered(|results| results.stage_answer = Some(answer.to_owned()));
    let aborted = || {
        answered(|results| {
            results.aborted = true;
            results.stage_answer = Some(String::new());
        })
    };
    let cases = [
        (
            vec![TurnEvent::CannotStart("no such file".to_owned())],
            "InitFailed configuration_error: no such file",
        ),
        (vec![TurnEvent::NothingToDo("Nothing changed.".to_owned())], "completed: Nothing changed."),
        (vec![words()], "Review"),
        (vec![words(), passed()], "check My words. false"),
        (vec![words(), passed(), checked(Ok("Form."))], "completed: Form."),
        (vec![words(), passed(), checked(Err("no JSON"))], "correct: no JSON"),
        (vec![words(), checked(Err("no JSON")), words(), passed()], "check My words. true"),
        (
            vec![checked(Err("no JSON")), checked(Err("still none"))],
            "TurnFailed output_format_failure: the answer does not have the requested form: still none",
        ),
        (vec![words(), rejected("early_end")], "reject: not yet"),
        (vec![finished(false, "Sum.")], "check Sum. false"),
        (vec![words(), finished(false, " ")], "check My words. false"),
        (
            vec![words(), finished(true, " ")],
            "TurnFailed blocked: the model reports that it is blocked: My words.",
        ),
        (vec![staged("Stage done.")], "check Stage done. false"),
        (vec![words(), staged("")], "check My words. false"),
        (vec![verified()], "completed: Done: `make test` passes."),
        (vec![words(), verified()], "completed: My words."),
        (vec![aborted()], "Pause"),
        (vec![TurnEvent::Stopped], "Pause"),
        (vec![failure(ErrorKind::Cancelled, None)], "Pause"),
        (vec![TurnEvent::Stopped, TurnEvent::Continue], "Ask { attempt: 1 }"),
        (vec![TurnEvent::Stopped, TurnEvent::Cancelled], "cancelled"),
        (vec![failure(ErrorKind::Auth, None)], "TurnFailed llm_error: it broke"),
        (vec![text(" \n"), text("")], "TurnFailed llm_error: the model sent two empty replies in a row"),
        (
            vec![cut(), cut()],
            "TokenLimit output: the model's reply was cut off twice by its output limit; raise `max_output_tokens` or \
             ask for less at once",
        ),
        (vec![reply("I can't.", StopReason::Refusal)], "TurnFailed llm_error: the model declined: I can't."),
    ];
    for (events, expected) in cases {
        let shown = format!("{events:?}");
        assert_eq!(last(&mut turns(|_| {}), events), expected, "{shown}");
    }
}

#[test]
fn an_unusable_reply_is_asked_for_again_once() {
    let cut = Reply { text: "half".into(), stop: StopReason::Length, ..Reply::default() };
    for unusable in [text("  \n"), TurnEvent::Replied(cut)] {
        assert!(matches!(next(&mut turns(|_| {}), unusable, LOW).0, Action::Say(_)));
    }
}

#[test]
fn a_task_with_one_answer_fails_by_its_rejection() {
    for (kind, reason) in [("verify_failed", "tool_execution_error"), ("no_edit", "output_format_failure")] {
        let mut turns =
            TurnMachine::new(Limits::default(), AnswerRules { only_one: true, ..AnswerRules::default() });
        assert_eq!(last(&mut turns, vec![rejected(kind)]), format!("TurnFailed {reason}: not yet"));
    }
}

#[test]
fn passing_tests_end_a_task_only_if_its_answer_may_have_any_form() {
    let verified = || answered(|results| results.verified_by = Some("make test".to_owned()));
    let mut free = TurnMachine::new(Limits::default(), AnswerRules::default());
    assert_eq!(last(&mut free, vec![verified()]), "completed: Done: `make test` passes.");
    let checked = AnswerRules { checked: true, ..AnswerRules::default() };
    assert_eq!(
        last(&mut TurnMachine::new(Limits::default(), checked), vec![verified()]),
        "Ask { attempt: 1 }"
    );
}

#[test]
fn answers_that_are_rejected_without_a_change_end_the_task() {
    let mut turns = turns(|_| {});
    for _ in 0..4 {
        assert_eq!(last(&mut turns, vec![rejected("early_end"), TurnEvent::Ready]), "Ask { attempt: 1 }");
    }
    let message = "the model answered 5 times in a row without a tool call or a file change, although the work is not finished";
    let end = last(&mut turns, vec![rejected("early_end"), TurnEvent::Ready]);
    assert_eq!(end, format!("TurnFailed execution_halted: {message}"));
}

#[test]
fn retries_count_up_and_a_reply_starts_the_count_again() {
    let mut turns = turns(|_| {});
    assert!(matches!(
        next(&mut turns, failure(ErrorKind::Cut, Some(200)), LOW).0,
        Action::Wait { after_ms: 200 }
    ));
    assert!(matches!(next(&mut turns, TurnEvent::Waited, LOW).0, Action::Ask { attempt: 2 }));
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
    let spent = Cost { usd: 9.0, longest_reply: 0 };
    let at = |usage| move |turns: &mut TurnMachine| failed(next(turns, TurnEvent::Ready, usage).0).0;
    type Case = (fn(&mut Limits), LimitUsage, ErrorCode, &'static str);
    let cases: [Case; 4] = [
        (|limits| limits.max_turns = 3, LimitUsage { subtask_turns: 3, ..LOW }, ErrorCode::MaxTurns, "turns"),
        (
            |limits| limits.task_timeout_s = Some(2),
            LimitUsage { active_ms: 2_000, ..LOW },
            ErrorCode::Timeout,
            "time",
        ),
        (
            |limits| (limits.max_tokens, limits.compaction_threshold) = (1_000, 2.0),
            LimitUsage { tokens: 1_001, ..LOW },
            ErrorCode::TokenLimit,
            "context",
        ),
        (
            |limits| {
                limits.budget_usd = Some(10.0);
                limits.price = Some(Price { input: 1_000_000.0, ..Price::default() });
            },
            LimitUsage { tokens: 2, cost: spent, ..LOW },
            ErrorCode::Budget,
            "cost",
        ),
    ];
    for (change, usage, code, reason) in cases {
        let error = at(usage)(&mut turns(change));
        assert_eq!((error.code, error.reason.as_str()), (code, reason));
        assert!(matches!(
            next(&mut turns(change), TurnEvent::Ready, LimitUsage { tokens: 1, ..LOW }).0,
            Action::Ask { .. }
        ));
    }
    let mut few = turns(|limits| limits.max_turns = 1);
    next(&mut few, calls(&["a"]), LOW);
    let (error, _) = failed(next(&mut few, TurnEvent::Answered(CallResults::default()), LOW).0);
    assert_eq!(error.code, ErrorCode::MaxTurns);
    let (error, _) = failed(next(&mut few, TurnEvent::OutOfTime, LOW).0);
    assert_eq!(error.code, ErrorCode::Timeout);
}

#[test]
fn a_compaction_that_saves_nothing_ends_a_task_that_does_not_fit() {
    let mut small = turns(|limits| limits.max_tokens = 1_000);
    let full = LimitUsage { tokens: 1_500, ..LOW };
    assert!(matches!(next(&mut small, TurnEvent::Ready, full).0, Action::Compact { .. }));
    let (error, _) = failed(next(&mut small, TurnEvent::Compacted { smaller: false }, full).0);
    assert_eq!((error.code, error.reason.as_str()), (ErrorCode::TokenLimit, "context"));
}

#[test]
fn a_compaction_that_did_not_help_is_not_tried_again_until_the_context_has_grown() {
    let mut turns = turns(|limits| limits.max_tokens = 1_000);
    let at = |tokens| LimitUsage { tokens, ..LOW };
    assert!(matches!(next(&mut turns, TurnEvent::Ready, at(800)).0, Action::Compact { .. }));
    assert!(matches!(
        next(&mut turns, TurnEvent::Compacted { smaller: false }, at(800)).0,
        Action::Ask { .. }
    ));
    assert!(matches!(next(&mut turns, TurnEvent::Ready, at(900)).0, Action::Ask { .. }));
    assert!(matches!(next(&mut turns, TurnEvent::Ready, at(1_001)).0, Action::Compact { .. }));
}

/// Overflows at these sizes, each after a compaction that saved something: the sizes to compact to.
fn sizes_after_overflows(message: &str, tokens: &[u64]) -> Vec<Option<u64>> {
    let mut turns = turns(|_| {});
    let compact_to = |tokens: &u64| {
        let error = ModelError::new(ErrorKind::Overflow, message);
        let usage = LimitUsage { tokens: *tokens, ..LOW };
        let event = TurnEvent::Failed { error, after_ms: None };
        let Action::Compact { accepted_tokens } = next(&mut turns, event, usage).0 else {
            return None;
        };
        let again = next(&mut turns, TurnEvent::Compacted { smaller: true }, usage).0;
        assert!(matches!(again, Action::Ask { attempt: 1 }), "{again:?}");
        accepted_tokens
    };
    tokens.iter().map(compact_to).collect()
}

#[test]
fn an_overflow_compacts_to_the_stated_size_or_to_half_and_asks_again() {
    let stated = "This model's maximum context length is 8192 tokens.";
    type Case = (&'static str, &'static [u64], &'static [Option<u64>]);
    let cases: [Case; 4] = [
        (stated, &[20_000], &[Some(8_192)]),
        // The server counts more tokens than we do.
        (stated, &[6_000, 2_000], &[Some(6_000), Some(1_000)]),
        ("Too long.", &[20_000, 9_000], &[Some(10_000), Some(4_500)]),
        (
            "Too long.",
            &[64, 32, 16, 8, 4, 2, 1],
            &[Some(32), Some(16), Some(8), Some(4), Some(2), Some(1), None],
        ),
    ];
    for (message, tokens, sizes) in cases {
        assert_eq!(sizes_after_overflows(message, tokens), sizes, "{message} {tokens:?}");
    }
}

#[test]
fn an_accepted_size_is_remembered_and_a_conversation_that_cannot_shrink_ends_the_task() {
    let mut turns = turns(|_| {});
    let full = LimitUsage { tokens: 8_000, ..LOW };
    next(&mut turns, failure(ErrorKind::Overflow, None), full);
    next(&mut turns, TurnEvent::Compacted { smaller: true }, LOW);
    next(&mut turns, calls(&["a"]), LOW);
    let answered = TurnEvent::Answered(CallResults::default());
    let grown = LimitUsage { tokens: 3_001, ..LOW };
    assert!(matches!(next(&mut turns, answered, grown).0, Action::Compact { accepted_tokens: None }));
    next(&mut turns, failure(ErrorKind::Overflow, None), full);
    let (error, _) = failed(next(&mut turns, TurnEvent::Compacted { smaller: false }, full).0);
    let message = "it broke (the conversation cannot be shortened any further)".to_owned();
    assert_eq!(error, ErrorDetail { code: ErrorCode::TokenLimit, reason: "context".to_owned(), message });
}

#[test]
fn an_aborted_call_pauses_the_task_unless_its_time_is_up() {
    let aborted = || answered(|results| results.aborted = true);
    let at = |active_ms| {
        let mut turns = turns(|limits| limits.task_timeout_s = Some(2));
        next(&mut turns, aborted(), LimitUsage { active_ms, ..LOW }).0
    };
    assert!(matches!(at(1_999), Action::Pause));
    assert_eq!(failed(at(2_000)).0.code, ErrorCode::Timeout);
}

#[test]
fn sections_open_ten_times_in_a_task() {
    let mut turns = turns(|_| {});
    for _ in 0..10 {
        assert_eq!(turns.check_expansion(), Ok(()));
        turns.record_expansion();
    }
    let refusal = "This task has opened sections 10 times, which is the most. Go on with what you see.";
    assert_eq!(turns.check_expansion(), Err(refusal.to_owned()));
}

#[test]
fn an_answer_handler_decides_about_answers_and_nothing_else() {
    let handled = |events| {
        let mut turns =
            TurnMachine::new(Limits::default(), AnswerRules { handled: true, ..AnswerRules::default() });
        (last(&mut turns, events), turns.answer().to_owned())
    };
    let error = ErrorDetail {
        code: ErrorCode::TurnFailed,
        reason: "output_format_failure".to_owned(),
        message: "no JSON".to_owned(),
    };
    let (accepted, refused) = (
        TurnEvent::Handled(Conclusion::Answer("Better.".to_owned())),
        TurnEvent::Handled(Conclusion::Failed { answer: "Kept.".to_owned(), error }),
    );
    let failure = "TurnFailed output_format_failure: no JSON";
    let cases = [
        (vec![checked(Ok("Form."))], ("Handle { answer: \"Form.\" }", "")),
        (vec![text("Mine."), checked(Ok("Form.")), accepted], ("completed: Better.", "Mine.")),
        (vec![text("Mine."), checked(Ok("Form.")), refused], (failure, "Kept.")),
        (vec![TurnEvent::Cancelled], ("cancelled", "")),
    ];
    for (events, (end, answer)) in cases {
        assert_eq!(handled(events), (end.to_owned(), answer.to_owned()));
    }
}

#[test]
fn limits_warn_once_at_four_fifths() {
    let mut turns = turns(|limits| limits.task_timeout_s = Some(10));
    let usage = LimitUsage { active_ms: 8_000, ..LOW };
    let (_, warnings) = next(&mut turns, TurnEvent::Ready, usage);
    let message = "used 8 of 10 seconds".to_owned();
    assert_eq!(warnings, [Event::Warning { code: "limit_time".into(), message }]);
    assert_eq!(next(&mut turns, TurnEvent::Waited, usage).1, []);
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
            turns.record_call("same", false);
        }
        if verdicts.len() < 5 {
            let effect = next(&mut turns, TurnEvent::Answered(CallResults::default()), LOW).0;
            assert!(matches!(effect, Action::Ask { .. }));
        }
    }
    let circling = [3, 4, 5].map(CallVerdict::Repeated);
    assert_eq!(verdicts[..2], [CallVerdict::Run, CallVerdict::Run]);
    assert_eq!(verdicts[2..], circling);
    let (error, _) = failed(next(&mut turns, TurnEvent::Answered(CallResults::default()), LOW).0);
    assert_eq!(error.reason, "execution_halted");
}

#[test]
fn a_task_continues_only_if_its_calls_neither_ended_nor_aborted_it() {
    let continues = |change: fn(&mut CallResults)| {
        let mut results = CallResults::default();
        change(&mut results);
        results.continues()
    };
    assert!(continues(|_| {}));
    assert!(!continues(|results| results.aborted = true));
    assert!(!continues(|results| results.stage_answer = Some(String::new())));
    assert!(!continues(|results| results.verified_by = Some(String::new())));
}
