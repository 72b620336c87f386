//! Snapshot of a complete log.

use insta::assert_snapshot;

use super::*;
use crate::ui::fixtures;

#[test]
fn every_event_has_its_time_and_all_its_fields() {
    let mut out = Vec::new();
    let mut ui = Log::new(&mut out, PhaseLogTarget::Inline);
    for (_, event) in fixtures::scene() {
        ui.show(&event).unwrap();
    }
    ui.close().unwrap();
    assert_snapshot!(String::from_utf8(out).unwrap());
}
