use ring_log::RingLog;

fn filled(capacity: usize, messages: &[&str]) -> RingLog {
    let mut log = RingLog::new(capacity);
    for message in messages {
        log.push(message);
    }
    log
}

#[test]
fn below_capacity() {
    let log = filled(3, &["a", "b"]);
    assert_eq!(log.messages(), ["a", "b"]);
    assert_eq!(log.forgotten(), 0);
}

#[test]
fn above_capacity() {
    let log = filled(3, &["a", "b", "c", "d", "e"]);
    assert_eq!(log.messages(), ["c", "d", "e"]);
    assert_eq!(log.forgotten(), 2);
}

#[test]
fn no_capacity() {
    let log = filled(0, &["a", "b"]);
    assert!(log.messages().is_empty());
    assert_eq!(log.forgotten(), 2);
}

#[test]
fn the_last_messages() {
    let log = filled(3, &["a", "b", "c", "d"]);
    assert_eq!(log.last(2), ["c", "d"]);
    assert_eq!(log.last(9), ["b", "c", "d"]);
    assert!(log.last(0).is_empty());
}

#[test]
fn resizing() {
    let mut log = filled(3, &["a", "b", "c"]);
    log.resize(1);
    assert_eq!(log.messages(), ["c"]);
    assert_eq!(log.forgotten(), 2);
    log.resize(2);
    log.push("d");
    log.push("e");
    assert_eq!(log.messages(), ["d", "e"]);
    assert_eq!(log.forgotten(), 3);
}
