//! Parsing of messages from servers.

use super::*;

#[test]
fn answers_requests_and_notices_are_told_apart() {
    let read = |value: Value| read(value.to_string().as_bytes());
    assert_eq!(
        read(json!({"jsonrpc": "2.0", "id": 3, "result": {"a": 1}})),
        Some(IncomingMessage::Answer(3, Ok(json!({"a": 1}))))
    );
    let refusal = RpcError { code: -1, message: "no".into() };
    assert_eq!(
        read(json!({"jsonrpc": "2.0", "id": 4, "error": {"code": -1, "message": "no"}})),
        Some(IncomingMessage::Answer(4, Err(refusal)))
    );
    assert_eq!(
        read(json!({"jsonrpc": "2.0", "method": "notifications/progress"})),
        Some(IncomingMessage::Notification)
    );
    let Some(IncomingMessage::Asked(answer)) = read(json!({"jsonrpc": "2.0", "id": "x", "method": "ping"}))
    else {
        panic!("no answer to a ping");
    };
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": "x", "result": {}}));
    for odd in ["", "log line", "{}", "[1]", "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":1}"] {
        assert_eq!(super::read(odd.as_bytes()), None, "{odd}");
    }
}
