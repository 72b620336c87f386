//! Distinguishing a stream from a document, and the limits of both.

use super::*;

fn quiet() -> impl FnMut(ReplyDelta<'_>) + Send {
    |_: ReplyDelta<'_>| {}
}

#[test]
fn progress_goes_from_open_over_stopped_to_done() {
    let mut decoder = Decoder::new(Wire::Chat, 0);
    let mut sink = quiet();
    let mut feed = |text: &str| decoder.feed(text.as_bytes(), &mut sink).unwrap();
    assert_eq!(feed(": waiting\n\n"), ReplyProgress::Open);
    assert_eq!(feed("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"), ReplyProgress::Open);
    assert_eq!(
        feed("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"),
        ReplyProgress::Stopped
    );
    assert_eq!(feed("data: [DONE]\n\n"), ReplyProgress::Done);
}

#[test]
fn an_endless_document_is_an_error() {
    let mut decoder = Decoder::new(Wire::Chat, 0);
    let piece = [b"{\"x\":\"".as_slice(), &vec![b'x'; 8 << 20]].concat();
    let error = (0..9).try_for_each(|_| decoder.feed(&piece, &mut quiet()).map(|_| ())).unwrap_err();
    assert_eq!(error, ModelError::new(ErrorKind::Protocol, "the reply is longer than 64 MB"));
}

#[test]
fn an_endless_stream_is_an_error() {
    let mut decoder = Decoder::new(Wire::Chat, 0);
    let chunk =
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", "x".repeat(4 << 20));
    let error =
        (0..17).try_for_each(|_| decoder.feed(chunk.as_bytes(), &mut quiet()).map(|_| ())).unwrap_err();
    assert_eq!(error, ModelError::new(ErrorKind::Protocol, "the reply is longer than 64 MB"));
}

#[test]
fn endless_calls_are_an_error() {
    let mut decoder = Decoder::new(Wire::Chat, 0);
    let mut sink = quiet();
    let error = (0..2_000)
        .try_for_each(|index| {
            let chunk = format!(
                "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"function\":{{\"name\":\"t\"}}}}]}}}}]}}\n\n"
            );
            decoder.feed(chunk.as_bytes(), &mut sink).map(|_| ())
        })
        .unwrap_err();
    assert_eq!(error.to_string(), "the reply contains more than 1024 tool calls");
}

#[test]
fn excerpts_are_one_short_line() {
    assert_eq!(excerpt("  a\nb\tc  ", 10), "a b c");
    assert_eq!(excerpt("äöü", 2), "äö…");
}
