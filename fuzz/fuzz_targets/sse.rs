//! Fuzzes the SSE parser: any bytes in chunks of any size give the same events and never panic.
#![no_main]

use fusee_model::sse::{SseEvent, SseParser, SseError};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((step, bytes)) = input.split_first() else { return };
    let whole = parse(bytes.chunks(bytes.len().max(1)));
    let cut = parse(bytes.chunks(usize::from(*step).max(1)));
    assert_eq!(whole, cut);
});

fn parse<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Result<Vec<(String, String)>, SseError> {
    let mut parser = SseParser::default();
    let mut events = Vec::new();
    let mut each = |event: SseEvent<'_>| {
        events.push((event.name.to_owned(), event.data.to_owned()));
        Ok::<(), SseError>(())
    };
    for piece in pieces {
        parser.feed(piece, &mut each)?;
    }
    parser.finish(&mut each)?;
    Ok(events)
}
