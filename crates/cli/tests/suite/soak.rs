//! Short version of the soak: a thousand turns with faults and compactions do not leak.

use std::path::Path;

use fusee_testkit::soak::soak;

use crate::support::binary;

/// Allowed growth over 800 turns. It includes the page cache and allocator slack of a journal of that size.
const MEMORY_KB: u64 = 6 * 1024;

/// Threads for blocking work and pooled connections come with the load and stay for seconds; a leak per
/// fault, command or compaction would be dozens or hundreds.
const PASSING: usize = 8;

#[test]
fn a_thousand_turns_with_faults_and_compactions_leave_nothing_behind() {
    let soaked = soak(Path::new(binary()), 1_000);
    assert!(soaked.faults >= 190 && soaked.compactions >= 10, "{soaked:#?}");
    let (early, late) = (soaked.early, soaked.late);
    assert!(late.resident_kb <= early.resident_kb + MEMORY_KB, "{soaked:#?}");
    assert!(late.descriptors <= early.descriptors + PASSING, "{soaked:#?}");
    assert!(late.threads <= early.threads + PASSING, "{soaked:#?}");
    // Far above noise: if a turn's cost grew with the earlier turns, it would take many times as long.
    assert!(soaked.late_turn < soaked.early_turn * 3, "{soaked:#?}");
}
