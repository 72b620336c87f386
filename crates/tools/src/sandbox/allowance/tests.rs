//! Encoding and decoding round-trip.

use super::*;

#[test]
fn an_allowance_arrives_as_it_was_sent() {
    let sent = Allowance { cpu_s: 1, memory_bytes: u64::MAX, processes: 0x0102_0304, file_bytes: 1 << 40 };
    assert_eq!(Allowance::decode(&sent.encode()), sent);
    for what in [None, Some(Exceeded::Cpu), Some(Exceeded::Memory), Some(Exceeded::Processes)] {
        assert_eq!(Exceeded::of_mark(Exceeded::mark(what)), what);
    }
}
