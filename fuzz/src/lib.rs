//! Helpers shared by the fuzz targets of the three wire formats.

use fusee_model::wire::stream::Decoder;
use fusee_model::{ReplyDelta, ModelError, Reply, Wire};

/// Asserts that a response decodes to the same reply however it is chunked, that its deltas add up to the
/// reply, and that nothing panics. The first byte of `input` is the chunk length.
pub fn reply_is_the_same_however_it_is_cut(wire: Wire, input: &[u8]) {
    let Some((step, bytes)) = input.split_first() else { return };
    let whole = decode(wire, bytes.chunks(bytes.len().max(1)));
    let cut = decode(wire, bytes.chunks(usize::from(*step).max(1)));
    assert_eq!(whole, cut);
    if let (Ok(reply), told) = whole {
        assert_eq!(reply.text, told.text);
        assert_eq!(reply.reasoning.map(|reasoning| reasoning.text).unwrap_or_default(), told.reasoning);
    }
}

#[derive(Debug, Default, PartialEq)]
struct Told {
    text: String,
    reasoning: String,
}

fn decode<'a>(wire: Wire, pieces: impl Iterator<Item = &'a [u8]>) -> (Result<Reply, ModelError>, Told) {
    let mut told = Told::default();
    let mut sink = |delta: ReplyDelta<'_>| match delta {
        ReplyDelta::Text(piece) => told.text.push_str(piece),
        ReplyDelta::Reasoning(piece) => told.reasoning.push_str(piece),
        _ => {}
    };
    let mut decoder = Decoder::new(wire, 0);
    for piece in pieces {
        if let Err(error) = decoder.feed(piece, &mut sink) {
            return (Err(error), told);
        }
    }
    let reply = decoder.finish(&mut sink);
    (reply, told)
}
