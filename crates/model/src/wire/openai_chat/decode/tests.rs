//! Replies as sent by the many servers of this format.

use proptest::prelude::*;
use serde_json::json;

use crate::wire::stream::Decoder;
use crate::{ErrorKind, ModelError, Reasoning, Reply, ReplyDelta, StopReason, ToolCall, Usage, Wire};

/// The reply and the deltas, one per line.
fn decode(pieces: &[&[u8]]) -> (Result<Reply, ModelError>, String) {
    let mut reported = String::new();
    let mut sink = |delta: ReplyDelta<'_>| reported.push_str(&format!("{delta:?}\n"));
    let mut decoder = Decoder::new(Wire::Chat, 3);
    for piece in pieces {
        if let Err(error) = decoder.feed(piece, &mut sink) {
            return (Err(error), reported);
        }
    }
    let reply = decoder.finish(&mut sink);
    (reply, reported)
}

/// A stream of these chunks, terminated by `[DONE]`.
fn stream(chunks: &[serde_json::Value]) -> String {
    let mut text: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    text.push_str("data: [DONE]\n\n");
    text
}

fn delta(delta: serde_json::Value) -> serde_json::Value {
    json!({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn stop(reason: &str) -> serde_json::Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn calls(reply: &Reply) -> Vec<(&str, &str, &str)> {
    reply.tool_calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments)).collect()
}

fn reply_of(chunks: &[serde_json::Value]) -> Reply {
    decode(&[stream(chunks).as_bytes()]).0.unwrap()
}

fn tool_delta(call: serde_json::Value) -> serde_json::Value {
    delta(json!({"tool_calls": [call]}))
}

#[test]
fn text_reasoning_calls_and_usage() {
    let text = stream(&[
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"reasoning_content": "let me "})),
        delta(json!({"reasoning_content": "look"})),
        delta(json!({"content": "I "})),
        delta(json!({"content": "look."})),
        tool_delta(
            json!({"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": ""}}),
        ),
        tool_delta(json!({"index": 0, "function": {"arguments": "{\"p\":"}})),
        tool_delta(json!({"index": 0, "function": {"arguments": "1}"}})),
        tool_delta(
            json!({"index": 1, "id": "b", "type": "function", "function": {"name": "list", "arguments": "{}"}}),
        ),
        stop("tool_calls"),
        json!({"choices": [], "usage": {"prompt_tokens": 90, "completion_tokens": 12, "total_tokens": 102,
            "prompt_tokens_details": {"cached_tokens": 64}, "completion_tokens_details": {"reasoning_tokens": 5}}}),
    ]);
    let (reply, reported) = decode(&[text.as_bytes()]);
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    assert_eq!(
        reply.unwrap(),
        Reply {
            text: "I look.".into(),
            reasoning: Some(Reasoning { text: "let me look".into(), opaque: vec![] }),
            tool_calls: vec![call("a", "read", "{\"p\":1}"), call("b", "list", "{}")],
            usage: Some(Usage {
                input_tokens: 90,
                output_tokens: 12,
                cached_tokens: 64,
                reasoning_tokens: 5,
                ..Usage::default()
            }),
            stop: StopReason::ToolCalls,
            source_line: None,
        }
    );
    insta::assert_snapshot!(reported, @r#"
    Reasoning("let me ")
    Reasoning("look")
    Text("I ")
    Text("look.")
    ToolCall { index: 0, name: "read" }
    ToolArguments { index: 0, fragment: "{\"p\":" }
    ToolArguments { index: 0, fragment: "1}" }
    ToolCall { index: 1, name: "list" }
    ToolArguments { index: 1, fragment: "{}" }
    "#);
}

#[test]
fn arguments_as_an_object_keep_their_own_text() {
    let raw = r#"data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"a","arguments":{"z": 1,  "a":2}}},{"function":{"name":"b","arguments":null}}]},"finish_reason":"stop"}]}

"#;
    let reply = decode(&[raw.as_bytes()]).0.unwrap();
    assert_eq!(calls(&reply), [("call_3_0", "a", r#"{"z": 1,  "a":2}"#), ("call_3_1", "b", "")]);
    assert_eq!(reply.stop, StopReason::ToolCalls, "whatever the server called it");
}

#[test]
fn calls_without_an_index_are_told_apart_by_id() {
    let reply = reply_of(&[
        tool_delta(json!({"id": "a", "function": {"name": "one", "arguments": "{\"x\""}})),
        tool_delta(json!({"function": {"arguments": ":1}"}})),
        tool_delta(json!({"id": "b", "function": {"name": "two", "arguments": "{"}})),
        tool_delta(json!({"id": "b", "function": {"arguments": "}"}})),
    ]);
    assert_eq!(calls(&reply), [("a", "one", "{\"x\":1}"), ("b", "two", "{}")]);
}

#[test]
fn calls_that_all_have_the_index_zero() {
    let reply = reply_of(&[
        tool_delta(json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": "{}"}})),
        tool_delta(json!({"index": 0, "id": "b", "function": {"name": "two", "arguments": "{}"}})),
    ]);
    assert_eq!(calls(&reply), [("a", "one", "{}"), ("b", "two", "{}")]);
}

#[test]
fn id_and_name_repeated_in_every_piece() {
    let reply = reply_of(&[
        tool_delta(json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": ""}})),
        tool_delta(json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": "{"}})),
        tool_delta(json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": "}"}})),
    ]);
    assert_eq!(calls(&reply), [("a", "one", "{}")]);
}

#[test]
fn id_and_name_that_come_late() {
    let text = stream(&[
        tool_delta(json!({"index": 0, "function": {"arguments": "{\"x\":"}})),
        tool_delta(json!({"index": 0, "function": {"name": "late", "arguments": ""}})),
        tool_delta(json!({"index": 0, "id": "a", "function": {"arguments": "1}"}})),
    ]);
    let (reply, reported) = decode(&[text.as_bytes()]);
    assert_eq!(calls(&reply.unwrap()), [("a", "late", "{\"x\":1}")]);
    insta::assert_snapshot!(reported, @r#"
    ToolCall { index: 0, name: "late" }
    ToolArguments { index: 0, fragment: "{\"x\":" }
    ToolArguments { index: 0, fragment: "1}" }
    "#);
}

#[test]
fn a_name_in_pieces() {
    let reply = reply_of(&[
        tool_delta(json!({"index": 0, "id": "a", "function": {"name": "read_"}})),
        tool_delta(json!({"index": 0, "function": {"name": "file", "arguments": "{}"}})),
    ]);
    assert_eq!(calls(&reply), [("a", "read_file", "{}")]);
}

#[test]
fn interleaved_calls() {
    let reply = reply_of(&[
        tool_delta(json!({"index": 0, "id": "a", "function": {"name": "one"}})),
        tool_delta(json!({"index": 1, "id": "b", "function": {"name": "two"}})),
        tool_delta(json!({"index": 0, "function": {"arguments": "{\"n\":"}})),
        tool_delta(json!({"index": 1, "function": {"arguments": "{}"}})),
        tool_delta(json!({"index": 0, "function": {"arguments": "1}"}})),
    ]);
    assert_eq!(calls(&reply), [("a", "one", "{\"n\":1}"), ("b", "two", "{}")]);
}

#[test]
fn ids_that_are_missing_or_the_same_become_distinct() {
    let reply = reply_of(&[delta(json!({"tool_calls": [
        {"index": 0, "id": "", "function": {"name": "one", "arguments": "{}"}},
        {"index": 1, "id": "same", "function": {"name": "two", "arguments": "{}"}},
        {"index": 2, "id": "same", "function": {"name": "three", "arguments": "{}"}},
        {"index": 3, "id": 17, "function": {"name": "four", "arguments": "{}"}},
    ]}))]);
    let ids: Vec<&str> = reply.tool_calls.iter().map(|call| &*call.id).collect();
    assert_eq!(ids, ["call_3_0", "same", "call_3_2", "17"]);
}

#[test]
fn a_call_without_arguments_is_still_told() {
    let text = stream(&[tool_delta(json!({"index": 0, "id": "a", "function": {"name": "now"}}))]);
    let (reply, reported) = decode(&[text.as_bytes()]);
    assert_eq!(calls(&reply.unwrap()), [("a", "now", "")]);
    assert_eq!(reported, "ToolCall { index: 0, name: \"now\" }\n");
}

#[test]
fn reasoning_under_its_other_names() {
    let reply = reply_of(&[
        delta(json!({"reasoning": "a", "reasoning_content": "a"})),
        delta(json!({"reasoning": "b", "content": null})),
        delta(json!({"reasoning": {"odd": true}})),
        delta(
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "c"}]}, {"type": "text", "text": "T"}]}),
        ),
    ]);
    assert_eq!(reply.reasoning.unwrap().text, "abc");
    assert_eq!(reply.text, "T");
}

#[test]
fn reasoning_details_are_joined_by_index_and_kept_whole() {
    let detail = |value| delta(json!({"reasoning_details": [value]}));
    let reply = reply_of(&[
        detail(json!({"type": "reasoning.text", "text": "I ", "index": 0, "format": "f"})),
        detail(json!({"type": "reasoning.text", "text": "see", "index": 0, "format": "f"})),
        detail(json!({"type": "reasoning.text", "signature": "sig=", "index": 0, "text": null})),
        detail(json!({"type": "reasoning.encrypted", "data": "abc", "index": 1, "new_field": [1]})),
        detail(json!({"type": "reasoning.encrypted", "data": "no index"})),
        detail(json!({"type": "reasoning.encrypted", "data": "another"})),
    ]);
    assert_eq!(
        reply.reasoning.unwrap().opaque,
        [
            json!({"type": "reasoning.text", "text": "I see", "index": 0, "format": "f", "signature": "sig="}),
            json!({"type": "reasoning.encrypted", "data": "abc", "index": 1, "new_field": [1]}),
            json!({"type": "reasoning.encrypted", "data": "no index"}),
            json!({"type": "reasoning.encrypted", "data": "another"}),
        ]
    );
}

#[test]
fn usage_in_every_chunk_takes_the_last() {
    let usage = |prompt: u64, completion: u64| json!({"choices": [{"delta": {"content": "x"}}], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}});
    let reply = reply_of(&[usage(5, 1), usage(5, 2), json!({"choices": [], "usage": null})]);
    assert_eq!(reply.usage, Some(Usage { input_tokens: 5, output_tokens: 2, ..Usage::default() }));
}

#[test]
fn usage_in_odd_places() {
    let one = |chunk| reply_of(&[chunk]).usage;
    assert_eq!(
        one(json!({"x_groq": {"id": "r", "usage": {"prompt_tokens": 7, "completion_tokens": 8}}})),
        Some(Usage { input_tokens: 7, output_tokens: 8, ..Usage::default() })
    );
    assert_eq!(
        one(json!({"usage": {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4}})),
        Some(Usage { input_tokens: 9, output_tokens: 1, cached_tokens: 4, ..Usage::default() })
    );
    assert_eq!(one(json!({"usage": {"prompt_tokens": 0, "completion_tokens": 0}})), None);
    assert_eq!(one(json!({"usage": "many"})), None);
    assert_eq!(
        one(json!({"usage": {"prompt_tokens": 9, "completion_tokens_details": null}})).unwrap().input_tokens,
        9
    );
}

#[test]
fn a_finish_reason_is_enough_of_an_end() {
    let text = format!("data: {}\n\ndata: {}\n\n", delta(json!({"content": "all"})), stop("stop"));
    assert_eq!(decode(&[text.as_bytes()]).0.unwrap().text, "all");
    let forgotten = text.trim_end();
    assert_eq!(decode(&[forgotten.as_bytes()]).0.unwrap().text, "all");
}

#[test]
fn done_without_a_finish_reason_is_enough_of_an_end() {
    let reply = reply_of(&[delta(json!({"content": "all"}))]);
    assert_eq!((reply.text.as_str(), reply.stop), ("all", StopReason::End));
}

#[test]
fn a_stream_without_an_end_is_cut() {
    let whole = stream(&[delta(json!({"content": "some text"})), stop("stop")]);
    let end = whole.find("\"finish_reason\":\"stop\"").unwrap();
    for cut in 0..=end {
        let error = decode(&[&whole.as_bytes()[..cut]]).0.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Cut, "at {cut}: {error}");
    }
    assert_eq!(decode(&[whole.as_bytes()]).0.unwrap().text, "some text");
}

#[test]
fn every_finish_reason() {
    let reason = |word: &str| reply_of(&[delta(json!({"content": "x"})), stop(word)]).stop;
    assert_eq!(reason("stop"), StopReason::End);
    assert_eq!(reason("length"), StopReason::Length);
    assert_eq!(reason("content_filter"), StopReason::Refusal);
    assert_eq!(reason("tool_calls"), StopReason::End, "there are no calls");
    assert_eq!(reason("odd"), StopReason::Other("odd".into()));
}

#[test]
fn a_refusal_is_text_and_a_reason() {
    let reply = reply_of(&[
        delta(json!({"refusal": "I will "})),
        delta(json!({"refusal": "not."})),
        delta(json!({"refusal": null})),
        stop("stop"),
    ]);
    assert_eq!((reply.text.as_str(), reply.stop), ("I will not.", StopReason::Refusal));
}

#[test]
fn only_the_first_choice_counts() {
    let reply = reply_of(&[
        json!({"choices": [{"index": 1, "delta": {"content": "no"}}, {"index": 0, "delta": {"content": "yes"}}]}),
    ]);
    assert_eq!(reply.text, "yes");
}

#[test]
fn errors_inside_the_stream() {
    let error = |chunk: serde_json::Value| {
        let text = stream(&[delta(json!({"content": "half"})), chunk]);
        let error = decode(&[text.as_bytes()]).0.unwrap_err();
        (error.kind, error.status, error.message)
    };
    assert_eq!(
        error(json!({"error": {"code": 429, "message": "slow down"}})),
        (ErrorKind::RateLimited, Some(429), "slow down".into())
    );
    assert_eq!(
        error(
            json!({"error": {"code": "server_error", "message": "gone"}, "choices": [{"finish_reason": "error"}]})
        ),
        (ErrorKind::Server, None, "gone".into())
    );
    assert_eq!(
        error(
            json!({"error": {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error"}})
        ),
        (ErrorKind::Overflow, Some(400), "the request exceeds the available context size".into())
    );
    assert_eq!(error(json!({"error": "boom"})), (ErrorKind::Server, None, "boom".into()));
    assert_eq!(
        error(json!({"object": "error", "message": "bad", "code": 40303})),
        (ErrorKind::Server, None, "bad".into())
    );
    assert_eq!(error(json!({"choices": [{"delta": {}, "finish_reason": "error"}]})).0, ErrorKind::Server);
}

#[test]
fn a_null_error_is_none() {
    let reply = reply_of(&[json!({"error": null, "choices": [{"delta": {"content": "x"}}]})]);
    assert_eq!(reply.text, "x");
}

#[test]
fn a_whole_document_is_a_reply_too() {
    let document = json!({"id": "c", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": "Hi.", "reasoning_content": "hm", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}]}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 6}});
    let (reply, reported) = decode(&[b"\n ", document.to_string().as_bytes()]);
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), calls(&reply)), ("Hi.", vec![("a", "read", "{}")]));
    assert_eq!(reply.usage.unwrap().output_tokens, 6);
    insta::assert_snapshot!(reported, @r#"
    Reasoning("hm")
    Text("Hi.")
    ToolCall { index: 0, name: "read" }
    ToolArguments { index: 0, fragment: "{}" }
    "#);
}

#[test]
fn documents_that_are_no_reply() {
    let kind = |text: &str| decode(&[text.as_bytes()]).0.unwrap_err().kind;
    assert_eq!(kind("{\"choices\":[{\"message\":{\"content\":\"ha"), ErrorKind::Cut);
    assert_eq!(kind("{\"error\":{\"message\":\"model not found\",\"code\":404}}"), ErrorKind::Invalid);
    assert_eq!(kind("{\"hello\":1}"), ErrorKind::Protocol);
    assert_eq!(kind("{\"choices\":[]}"), ErrorKind::Protocol);
    assert_eq!(kind("[{\"error\":{\"code\":429,\"message\":\"wait\"}}]"), ErrorKind::RateLimited);
    assert_eq!(kind("<html><title>Login</title>"), ErrorKind::Protocol);
    assert_eq!(kind("data: {\"choices\": nonsense}\n\n"), ErrorKind::Protocol);
    assert_eq!(kind(""), ErrorKind::Cut);
    assert_eq!(kind("welcome to nginx"), ErrorKind::Protocol);
    let late = format!("odd first line\n{}", stream(&[delta(json!({"content": "x"}))]));
    assert_eq!(decode(&[late.as_bytes()]).0.unwrap().text, "x");
    assert_eq!(kind(": processing\n\n"), ErrorKind::Cut);
}

#[test]
fn a_protocol_error_shows_what_came() {
    let error = decode(&[b"data: ceci n'est pas du JSON\n\n"]).0.unwrap_err();
    assert_eq!(error.to_string(), "the server's response is not a model reply: ceci n'est pas du JSON");
}

fn any_chunk() -> impl Strategy<Value = serde_json::Value> {
    let text = "[a-zä\"\\\\\n€ ]{0,6}";
    let number = prop::option::of(0..3u64);
    prop_oneof![
        text.prop_map(|text| delta(json!({"content": text}))),
        text.prop_map(|text| delta(json!({"reasoning_content": text}))),
        (number, prop::option::of("[ab]"), prop::option::of("[a-c]{1,4}"), text).prop_map(
            |(index, id, name, arguments)| tool_delta(
                json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}})
            )
        ),
        (0..9u64, 0..9u64).prop_map(
            |(input, output)| json!({"usage": {"prompt_tokens": input, "completion_tokens": output}})
        ),
        Just(stop("stop")),
        Just(json!({"error": {"message": "oh"}})),
    ]
}

proptest! {
    #[test]
    fn any_split_of_any_stream_gives_the_same_reply_and_deltas(
        before in "[ \n<x]{0,3}",
        chunks in prop::collection::vec(any_chunk(), 0..12),
        keep in any::<prop::sample::Index>(),
        cut in any::<bool>(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut bytes = format!("{before}{}", stream(&chunks)).into_bytes();
        if cut {
            bytes.truncate(keep.index(bytes.len()));
        }
        let whole = decode(&[&bytes]);
        let mut at: Vec<usize> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(&decode(&pieces), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&decode(&single), &whole);

        // The deltas passed to the sink add up to the reply.
        if let Ok(reply) = &whole.0 {
            let mut text = String::new();
            let mut sink = |delta: ReplyDelta<'_>| if let ReplyDelta::Text(piece) = delta { text.push_str(piece) };
            let mut decoder = Decoder::new(Wire::Chat, 3);
            decoder.feed(&bytes, &mut sink).unwrap();
            decoder.finish(&mut sink).unwrap();
            prop_assert_eq!(&text, &reply.text);
        }
    }

    #[test]
    fn garbage_is_an_error_and_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), json in any::<bool>()) {
        let mut input = if json { b"data: {".to_vec() } else { Vec::new() };
        input.extend(bytes);
        let _ = decode(&[&input]);
    }
}

#[test]
fn an_event_that_cannot_be_read_in_the_middle_of_a_reply_is_a_broken_stream() {
    let mut decoder = Decoder::new(Wire::Chat, 1);
    let stream =
        b"data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: {\"choices\":[{\"del\xff\n\n";
    let error = decoder.feed(stream, &mut |_| {}).expect_err("it broke");
    assert_eq!(error.kind, ErrorKind::Cut, "{error}");
}
