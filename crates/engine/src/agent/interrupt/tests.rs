//! Which turns can be stopped, and when.

use super::*;

#[test]
fn only_turns_under_way_are_stopped_and_each_once() {
    let (stop, task) = (TurnInterrupt::default(), CancellationToken::new());
    assert!(!stop.stop(), "nothing runs");
    let first = stop.clone().begin(&task);
    let second = stop.begin(&task);
    assert!(stop.stop());
    assert!(first.token.is_cancelled() && second.token.is_cancelled() && !task.is_cancelled());
    assert!(!stop.stop(), "what was stopped does not run");
    let third = stop.begin(&task);
    drop((first, second));
    assert!(stop.stop() && third.token.is_cancelled());
    drop(third);
    assert!(!stop.stop());
}

#[test]
fn a_task_that_is_cancelled_takes_its_turn_along() {
    let (stop, task) = (TurnInterrupt::default(), CancellationToken::new());
    let turn = stop.begin(&task);
    task.cancel();
    assert!(turn.token.is_cancelled() && !stop.stop());
}
