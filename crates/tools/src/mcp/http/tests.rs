//! Parsing of event streams with different line endings.

use super::*;

#[test]
fn the_data_of_events_is_found_whatever_their_line_ends() {
    let text = b"event: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n: ping\n\ndata:x\n\nrest";
    let (end, next) = event_end(text).unwrap();
    assert_eq!(data(&text[..end]), b"{\"a\":\n1}");
    let (end, further) = event_end(&text[next..]).unwrap();
    assert_eq!(data(&text[next..next + end]), b"");
    let (end, _) = event_end(&text[next + further..]).unwrap();
    assert_eq!(data(&text[next + further..][..end]), b"x");
    assert_eq!(event_end(b"data: unended\n"), None);
}
