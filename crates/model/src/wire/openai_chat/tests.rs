//! Encoded bytes of chat completions.

use serde_json::json;

use crate::{Conversation, Message, Reasoning, RequestOptions, ToolCall, ToolSpec, Wire};

fn body(conversation: &Conversation, options: &RequestOptions) -> String {
    String::from_utf8(conversation.body(options).to_vec()).unwrap()
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "read_file".into(), arguments: arguments.into() }
}

#[test]
fn a_whole_request() {
    let tools = vec![ToolSpec {
        name: "read_file".into(),
        description: "Reads.".into(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    }];
    let mut conversation = Conversation::new(Wire::Chat, "Be brief.".into(), tools);
    conversation.push(Message::user("What is in \"ä.txt\"?\n"));
    conversation.push(Message::Assistant {
        text: String::new(),
        reasoning: Some(Reasoning { text: "look".into(), opaque: vec![json!({"type": "x", "data": "q="})] }),
        tool_calls: vec![call("c1", "{ \"path\": \"ä.txt\" }")],
    });
    conversation.push(Message::Tool {
        call_id: "c1".into(),
        name: "read_file".into(),
        content: "hello".into(),
        ok: true,
        images: vec![],
    });
    conversation.push(Message::Assistant {
        text: "It says hello.".into(),
        reasoning: None,
        tool_calls: vec![],
    });
    let options = RequestOptions {
        model: "m-1".into(),
        temperature: Some(0.2),
        top_p: Some(0.9),
        max_output_tokens: Some(4096),
        reasoning_effort: Some("high".into()),
        extra: json!({"seed": 7}).as_object().unwrap().clone(),
        ..RequestOptions::default()
    };
    insta::assert_snapshot!(body(&conversation, &options).replace("},{", "},\n{").replace("],\"", "],\n\""), @r#"
    {"messages":[{"role":"system","content":"Be brief."},
    {"role":"user","content":"What is in \"ä.txt\"?\n"},
    {"role":"assistant","content":null,"reasoning_details":[{"type":"x","data":"q="}],
    "tool_calls":[{"id":"c1","type":"function","function":{"name":"read_file","arguments":"{ \"path\": \"ä.txt\" }"}}]},
    {"role":"tool","tool_call_id":"c1","content":"hello"},
    {"role":"assistant","content":"It says hello."}],
    "tools":[{"type":"function","function":{"name":"read_file","description":"Reads.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}],
    "model":"m-1","temperature":0.2,"top_p":0.9,"max_tokens":4096,"reasoning_effort":"high","stream":true,"stream_options":{"include_usage":true},"seed":7}
    "#);
}

#[test]
fn nothing_but_a_user_message() {
    let mut conversation = Conversation::new(Wire::Chat, String::new(), vec![]);
    let options = RequestOptions { model: "m".into(), stream: false, ..RequestOptions::default() };
    assert_eq!(body(&conversation, &options), r#"{"messages":[],"model":"m","stream":false}"#);
    conversation.push(Message::user("hi"));
    conversation.push(Message::user("ho"));
    assert_eq!(
        body(&conversation, &options),
        r#"{"messages":[{"role":"user","content":"hi"},{"role":"user","content":"ho"}],"model":"m","stream":false}"#
    );
}

#[test]
fn a_field_given_word_for_word_wins() {
    let conversation = Conversation::new(Wire::Chat, String::new(), vec![]);
    let options = RequestOptions {
        model: "m".into(),
        temperature: Some(1.0),
        stream: false,
        extra: json!({"temperature": 0, "grammar": "root ::= \"a\""}).as_object().unwrap().clone(),
        ..RequestOptions::default()
    };
    assert_eq!(
        body(&conversation, &options),
        r#"{"messages":[],"model":"m","temperature":0,"stream":false,"grammar":"root ::= \"a\""}"#
    );
}

#[test]
fn arguments_that_are_no_json_go_back_wrapped() {
    let mut conversation = Conversation::new(Wire::Chat, String::new(), vec![]);
    conversation.push(Message::Assistant {
        text: "t".into(),
        reasoning: None,
        tool_calls: vec![call("a", "{\"path\": "), call("b", " "), call("c", "[1]")],
    });
    let value: serde_json::Value =
        serde_json::from_slice(&conversation.body(&RequestOptions::default()).to_vec()).unwrap();
    let sent: Vec<&str> = (0..3)
        .map(|index| value["messages"][0]["tool_calls"][index]["function"]["arguments"].as_str().unwrap())
        .collect();
    assert_eq!(sent, [r#"{"malformed_arguments":"{\"path\": "}"#, "{}", "[1]"]);
    // The journal keeps exactly what the model sent.
    let Message::Assistant { tool_calls, .. } = &conversation.messages()[0] else { panic!() };
    assert_eq!(tool_calls[0].arguments, "{\"path\": ");
}
