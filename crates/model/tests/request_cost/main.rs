//! The cost of building a request, in allocations and bytes, does not depend on the length of the
//! conversation.

mod measure;

use std::ops::Range;

use fusee_model::Wire;
use measure::{Cost, requests};

/// The newest messages, up to this many bytes, are copied into each request; older ones are shared.
const NEWEST: u64 = 64 * 1024;

const FORMATS: [Wire; 3] = [Wire::Chat, Wire::Responses, Wire::Anthropic];

#[test]
fn the_request_of_turn_500_takes_its_own_bytes_and_a_bounded_copy() {
    for wire in FORMATS {
        for Cost { allocations, bytes, own, body } in requests(wire, 490..501) {
            assert!(body > 2_000_000, "{wire:?}: a long conversation, {body} bytes");
            assert!(allocations < 40, "{wire:?}: {allocations} allocations");
            assert!(bytes < 4 * own as u64 + 2 * NEWEST, "{wire:?}: {bytes} bytes for {own} of its own");
        }
    }
}

#[test]
fn a_turn_costs_the_same_early_and_late() {
    for wire in FORMATS {
        // Enough turns that the newest messages are sealed into shared chunks several times.
        let sum = |turns: Range<usize>| {
            let costs = requests(wire, turns);
            let total = |of: fn(&Cost) -> u64| costs.iter().map(of).sum::<u64>();
            (total(|cost| cost.allocations), total(|cost| cost.bytes))
        };
        let (early, late) = (sum(100..164), sum(436..500));
        assert!(late.0 <= early.0 + 8, "{wire:?}: allocations and bytes: {early:?} and {late:?}");
        // Only the list of shared chunks grows: 32 bytes per 64 KB of conversation.
        assert!(late.1 < early.1 + early.1 / 10, "{wire:?}: allocations and bytes: {early:?} and {late:?}");
    }
}
