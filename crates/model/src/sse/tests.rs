//! Event streams split at any position.

use proptest::prelude::*;

use super::*;

type Owned = (String, String);

fn parse(pieces: &[&[u8]]) -> Result<Vec<Owned>, SseError> {
    let mut parser = SseParser::default();
    let mut events = Vec::new();
    let mut each = |event: SseEvent<'_>| -> Result<(), SseError> {
        events.push((event.name.to_owned(), event.data.to_owned()));
        Ok(())
    };
    for piece in pieces {
        parser.feed(piece, &mut each)?;
    }
    parser.finish(&mut each)?;
    Ok(events)
}

fn data(events: &[&str]) -> Vec<Owned> {
    events.iter().map(|data| (String::new(), (*data).to_owned())).collect()
}

#[test]
fn the_three_line_ends() {
    for stream in ["data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r"] {
        assert_eq!(parse(&[stream.as_bytes()]).unwrap(), data(&["a", "b"]), "{stream:?}");
    }
}

#[test]
fn comments_and_unknown_fields_are_skipped() {
    let stream = b": keep-alive\n\n:\n\nid: 3\nretry: 10\nodd\ndata: x\n: inside\n\n";
    assert_eq!(parse(&[stream]).unwrap(), data(&["x"]));
}

#[test]
fn names_and_several_data_lines() {
    let stream = b"event: delta\ndata: one\ndata:two\ndata\ndata:  four\n\nevent: gone\n\ndata: last\n\n";
    let expected: Vec<Owned> =
        vec![("delta".into(), "one\ntwo\n\n four".into()), (String::new(), "last".into())];
    assert_eq!(parse(&[stream]).unwrap(), expected);
}

#[test]
fn a_byte_order_mark_is_only_one_at_the_start() {
    assert_eq!(parse(&["\u{feff}data: a\n\n\u{feff}data: b\n\n".as_bytes()]).unwrap(), data(&["a"]));
}

#[test]
fn a_forgotten_last_blank_line_costs_nothing() {
    assert_eq!(parse(&[b"data: a\n\ndata: b"]).unwrap(), data(&["a", "b"]));
    assert_eq!(parse(&[b"data: a\n\ndata: b\n"]).unwrap(), data(&["a", "b"]));
    assert_eq!(parse(&[b""]).unwrap(), data(&[]));
}

#[test]
fn bytes_that_are_no_utf8_become_replacement_marks() {
    assert_eq!(parse(&[b"data: a\xffb\n\n"]).unwrap(), data(&["a\u{fffd}b"]));
}

#[test]
fn an_endless_line_is_an_error_and_not_memory() {
    let piece = vec![b'x'; 1 << 20];
    let mut parser = SseParser::default();
    let mut fed = 0;
    let error = loop {
        fed += piece.len();
        if let Err(error) = parser.feed(&piece, |_| Ok::<(), SseError>(())) {
            break error;
        }
    };
    assert_eq!((error, fed), (SseError::Line, MAX_LINE + piece.len()));
    assert_eq!(error.to_string(), "a line of the event stream is longer than 8 MB");
}

#[test]
fn an_endless_event_is_an_error_and_not_memory() {
    let line = [b"data: ".as_slice(), &vec![b'x'; 1 << 20], b"\n"].concat();
    let mut parser = SseParser::default();
    let result = (0..20).try_for_each(|_| parser.feed(&line, |_| Ok::<(), SseError>(())));
    assert_eq!(result, Err(SseError::Event));
}

#[test]
fn the_first_error_of_the_reader_stops_the_parser() {
    #[derive(Debug, PartialEq)]
    struct Enough;
    impl From<SseError> for Enough {
        fn from(_: SseError) -> Self {
            Enough
        }
    }
    let mut seen = 0;
    let result = SseParser::default().feed(b"data: a\n\ndata: b\n\n", |_| {
        seen += 1;
        Err(Enough)
    });
    assert_eq!((result, seen), (Err(Enough), 1));
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(
        stream in "(data|event|:|id|\u{feff}|: |x|ä|\n|\r|\r\n|\n\n|data: [a-z]{0,5}\n){0,30}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let bytes = stream.as_bytes();
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for place in places {
            pieces.push(&bytes[from..place]);
            from = place;
        }
        pieces.push(&bytes[from..]);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let whole = parse(&[bytes]).unwrap();
        prop_assert_eq!(&parse(&pieces).unwrap(), &whole);
        prop_assert_eq!(&parse(&single).unwrap(), &whole);
    }
}
