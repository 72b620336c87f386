//! Tests that phase events and all other events reach the right stream.

use fusee::engine::journal::event::{Event, PhaseSource};

use super::*;
use crate::ui::{Log, PhaseLogTarget, fixtures};

#[test]
fn phases_go_to_their_own_stream_and_the_rest_to_the_face() {
    let (_, stamped) = fixtures::scene().into_iter().next().unwrap();
    let of = |event: Event| EventRecord { event, ..stamped.clone() };
    let mut out = Vec::new();
    let mut ui = PhaseUi::new(&mut out, Box::new(Log::new(io::sink(), PhaseLogTarget::Inline)));
    for event in [
        Event::PhaseState { phase: "context".into(), source: PhaseSource::PhaseControl, turn_index: 0 },
        Event::Log { message: "not a phase".into() },
        Event::PhaseTransition {
            from: "context".into(),
            to: "plan".into(),
            source: PhaseSource::PhaseControl,
            turn_index: 1,
            reason: "1 file was read".into(),
        },
        Event::PhaseProbeError { turn_index: 2, message: "no\u{1b}[31m answer".into() },
    ] {
        ui.show(&of(event)).unwrap();
    }
    drop(ui);
    let text = String::from_utf8(out).unwrap();
    insta::assert_snapshot!(text, @r"
    phase context
    phase context -> plan: 1 file was read
    phase unknown, keeping the current one: no␛[31m answer
    ");
}
