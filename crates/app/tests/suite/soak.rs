//! The short form of the soak: a thousand turns with faults and compactions leave the process as it was.

use std::path::Path;

use fusee_testkit::soak::soak;

use crate::fusee::binary;

/// Of 800 turns. What a journal of that many turns costs in page cache and allocator slack is within it.
const MEMORY_KB: u64 = 6 * 1024;

/// Threads for what blocks, and connections that are kept for the next request, come with the work and stay for seconds;
/// one a fault, a command or a compaction would be dozens or hundreds.
const PASSING: usize = 8;

#[test]
fn a_thousand_turns_with_faults_and_compactions_leave_nothing_behind() {
    let soaked = soak(Path::new(binary()), 1_000);
    assert!(soaked.faults >= 190 && soaked.compactions >= 10, "{soaked:#?}");
    let (early, late) = (soaked.early, soaked.late);
    assert!(late.resident_kb <= early.resident_kb + MEMORY_KB, "{soaked:#?}");
    assert!(late.descriptors <= early.descriptors + PASSING, "{soaked:#?}");
    assert!(late.threads <= early.threads + PASSING, "{soaked:#?}");
    // Far more than noise: a turn whose cost grew with the turns before it would take many times as long.
    assert!(soaked.late_turn < soaked.early_turn * 3, "{soaked:#?}");
}
