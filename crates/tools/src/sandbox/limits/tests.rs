//! Encoding and decoding round-trip.

use super::*;

#[test]
fn an_allowance_arrives_as_it_was_sent() {
    let sent =
        ResourceLimits { cpu_s: 1, memory_bytes: u64::MAX, processes: 0x0102_0304, file_bytes: 1 << 40 };
    assert_eq!(ResourceLimits::decode(&sent.encode()), sent);
    for what in [None, Some(ExceededLimit::Cpu), Some(ExceededLimit::Memory), Some(ExceededLimit::Processes)]
    {
        assert_eq!(ExceededLimit::of_mark(ExceededLimit::mark(what)), what);
    }
}
