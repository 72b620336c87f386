//! Encoded bytes of OpenAI responses.

use serde_json::{Value, json};

use crate::profile::{ModelTraits, ReasoningReplay};
use crate::{
    Conversation, Dialect, Message, Reasoning, RequestOptions, ToolCall, ToolChoice, ToolSpec, Wire,
};

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "t".into(), arguments: arguments.into() }
}

#[test]
fn a_whole_request() {
    let tools =
        vec![ToolSpec { name: "t".into(), description: "d".into(), parameters: json!({"type": "object"}) }];
    let mut conversation = Conversation::new(Wire::Responses, "Be brief.".into(), tools);
    conversation.push(Message::user("Go."));
    let kept = |after: u64, id: &str| json!({"after_calls": after, "item": {"type": "reasoning", "id": id, "new": 1}});
    conversation.push(Message::Assistant {
        text: "I look.".into(),
        reasoning: Some(Reasoning { text: "hm".into(), opaque: vec![kept(0, "r1"), kept(1, "r2")] }),
        tool_calls: vec![call("a", "{ \"x\": 1 }"), call("b", "{")],
    });
    conversation.push(Message::Tool {
        call_id: "a".into(),
        name: "t".into(),
        content: "r".into(),
        ok: true,
        images: vec![],
    });
    let options = RequestOptions {
        model: "gpt".into(),
        temperature: Some(0.5),
        max_output_tokens: Some(99),
        reasoning_effort: Some("low".into()),
        tool_choice: ToolChoice::Required,
        output_schema: Some(json!({"type": "object"})),
        ..RequestOptions::default()
    };
    let body = String::from_utf8(conversation.body(&options).to_vec()).unwrap();
    insta::assert_snapshot!(body.replace("},{", "},\n{").replace("],\"", "],\n\""), @r#"
    {"instructions":"Be brief.","input":[{"type":"message","role":"user","content":"Go."},
    {"type":"reasoning","id":"r1","new":1},
    {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
    {"type":"function_call","call_id":"a","name":"t","arguments":"{ \"x\": 1 }"},
    {"type":"reasoning","id":"r2","new":1},
    {"type":"function_call","call_id":"b","name":"t","arguments":"{\"malformed_arguments\":\"{\"}"},
    {"type":"function_call_output","call_id":"a","output":"r"}],
    "tools":[{"type":"function","name":"t","description":"d","parameters":{"type":"object"},"strict":false}],
    "model":"gpt","temperature":0.5,"max_output_tokens":99,"reasoning":{"effort":"low","summary":"auto"},"tool_choice":"required","text":{"format":{"type":"json_schema","name":"answer","strict":true,"schema":{"type":"object"}}},"store":false,"include":["reasoning.encrypted_content"],
    "stream":true}
    "#);
}

#[test]
fn a_model_that_does_not_reason_is_not_asked_for_its_reasoning() {
    let traits =
        ModelTraits { reasoning_replay: ReasoningReplay::Nothing, one_call: true, ..ModelTraits::default() };
    let mut conversation =
        Conversation::new(Dialect { wire: Wire::Responses, traits }, String::new(), vec![]);
    conversation.push(Message::Assistant {
        text: String::new(),
        reasoning: Some(Reasoning {
            text: String::new(),
            opaque: vec![json!({"after_calls": 0, "item": {}})],
        }),
        tool_calls: vec![],
    });
    let body: Value =
        serde_json::from_slice(&conversation.body(&RequestOptions::default()).to_vec()).unwrap();
    assert_eq!(
        body,
        json!({"input": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ""}]}],
               "model": "", "parallel_tool_calls": false, "store": false, "stream": true})
    );
}
