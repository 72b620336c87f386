//! Encoding and decoding round-trip, and the limits of all commands together.

use super::*;

#[test]
fn an_allowance_arrives_as_it_was_sent() {
    let sent =
        ResourceLimits { cpu_s: 1, memory_bytes: u64::MAX, processes: 0x0102_0304, file_bytes: 1 << 40 };
    assert_eq!(ResourceLimits::decode(&sent.encode()), sent);
    for what in [None, Some(ExceededLimit::Cpu), Some(ExceededLimit::Memory), Some(ExceededLimit::Processes)]
    {
        assert_eq!(ExceededLimit::from_code(ExceededLimit::mark(what)), what);
    }
}

#[test]
fn bounds_are_never_below_what_one_command_may_use() {
    let large = ResourceLimits { memory_bytes: u64::MAX, processes: 1 << 20, ..ResourceLimits::default() };
    assert_eq!(
        CgroupLimits::protecting_machine(&large),
        CgroupLimits { memory_bytes: u64::MAX, tasks: 2 << 20 }
    );
    let small = ResourceLimits { memory_bytes: 1, processes: 1, ..ResourceLimits::default() };
    let usual = ResourceLimits::defaults().memory_bytes;
    assert_eq!(
        CgroupLimits::protecting_machine(&small),
        CgroupLimits { memory_bytes: usual, tasks: MIN_TASKS }
    );
}
