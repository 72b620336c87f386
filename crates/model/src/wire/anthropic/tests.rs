//! Encoded bytes of Anthropic messages.

use serde_json::{Value, json};

use super::{choice, tools};
use crate::profile::{ComputerDisplay, ComputerTool, ModelTraits, ProviderTools, ThinkingStyle};
use crate::{
    Conversation, Dialect, Message, Reasoning, RequestOptions, ToolCall, ToolChoice, ToolSpec, Wire,
};

fn conversation() -> Conversation {
    let tools =
        vec![ToolSpec { name: "t".into(), description: "d".into(), parameters: json!({"type": "object"}) }];
    Conversation::new(Wire::Anthropic, "Be brief.".into(), tools)
}

fn result(id: &str, ok: bool) -> Message {
    Message::Tool { call_id: id.into(), name: "t".into(), content: "r".into(), ok, images: vec![] }
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: "t".into(), arguments: arguments.into() }
}

fn options() -> RequestOptions {
    RequestOptions { model: "claude".into(), ..RequestOptions::default() }
}

#[test]
fn a_whole_request() {
    let mut conversation = conversation();
    conversation.push(Message::user("Go."));
    conversation.push(Message::Assistant {
        text: "I look.".into(),
        reasoning: Some(Reasoning {
            text: "hm".into(),
            opaque: vec![
                json!({"type": "thinking", "thinking": "hm", "signature": "s=", "index": 0, "new": 1}),
            ],
        }),
        tool_calls: vec![call("a", "{ \"x\": 1 }"), call("b", "")],
    });
    conversation.push(result("a", true));
    conversation.push(result("b", false));
    let body = String::from_utf8(conversation.body(&options()).to_vec()).unwrap();
    insta::assert_snapshot!(body.replace("},{", "},\n{").replace("],\"", "],\n\""), @r#"
    {"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],
    "messages":[{"role":"user","content":[{"type":"text","text":"Go."}]},
    {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s=","new":1},
    {"type":"text","text":"I look."},
    {"type":"tool_use","id":"a","name":"t","input":{ "x": 1 }},
    {"type":"tool_use","id":"b","name":"t","input":{}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"},
    {"type":"tool_result","tool_use_id":"b","content":"r","is_error":true,"cache_control":{"type":"ephemeral"}}]}],
    "tools":[{"name":"t","description":"d","input_schema":{"type":"object"}}],
    "model":"claude","max_tokens":8192,"stream":true}
    "#);
}

#[test]
fn speakers_take_turns_whatever_is_said_in_a_row() {
    let mut conversation = conversation();
    for text in ["one", "", "two"] {
        conversation.push(Message::user(text));
    }
    conversation.push(Message::Assistant { text: " ".into(), reasoning: None, tool_calls: vec![] });
    conversation.push(Message::Assistant {
        text: String::new(),
        reasoning: None,
        tool_calls: vec![call("c", "[1]")],
    });
    conversation.push(result("c", true));
    conversation.push(Message::user("and"));
    let body: Value = serde_json::from_slice(&conversation.body(&options()).to_vec()).unwrap();
    let text = |text: &str| json!({"type": "text", "text": text});
    let mark = json!({"type": "ephemeral"});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [text("one"), text("[nothing]"), text("two")]},
            {"role": "assistant", "content": [text("[nothing]"),
                {"type": "tool_use", "id": "c", "name": "t", "input": {"malformed_arguments": "[1]"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": "r"},
                {"type": "text", "text": "and", "cache_control": mark}]},
        ])
    );
}

fn closing(options: &RequestOptions, traits: ModelTraits) -> Value {
    let conversation = Conversation::new(Dialect { wire: Wire::Anthropic, traits }, String::new(), vec![]);
    let mut body: Value = serde_json::from_slice(&conversation.body(options).to_vec()).unwrap();
    body.as_object_mut().unwrap().shift_remove("messages");
    body
}

#[test]
fn effort_becomes_a_budget_or_stays_an_effort() {
    let asked = RequestOptions {
        reasoning_effort: Some("medium".into()),
        temperature: Some(0.5),
        max_output_tokens: Some(1000),
        ..options()
    };
    assert_eq!(
        closing(&asked, ModelTraits::default()),
        json!({"model": "claude", "thinking": {"type": "enabled", "budget_tokens": 8192}, "max_tokens": 12288,
               "stream": true})
    );
    assert_eq!(
        closing(&asked, ModelTraits { thinking: ThinkingStyle::Adaptive, ..ModelTraits::default() }),
        json!({"model": "claude", "thinking": {"type": "adaptive"}, "max_tokens": 1000,
               "output_config": {"effort": "medium"}, "stream": true})
    );
}

#[test]
fn tools_are_forced_one_by_one_and_answers_follow_a_schema() {
    let schema = json!({"type": "object"});
    let asked = RequestOptions {
        tool_choice: ToolChoice::Named("t".into()),
        output_schema: Some(schema.clone()),
        stream: false,
        ..options()
    };
    assert_eq!(
        closing(&asked, ModelTraits { one_call: true, ..ModelTraits::default() }),
        json!({"model": "claude", "max_tokens": 8192,
               "tool_choice": {"type": "tool", "name": "t", "disable_parallel_tool_use": true},
               "output_config": {"format": {"type": "json_schema", "schema": schema}}, "stream": false})
    );
}

#[test]
fn tools_of_the_provider_stand_in_the_place_of_ours() {
    let tools = |specs: &[ToolSpec], provider_tools| {
        tools(specs, ModelTraits { provider_tools, ..ModelTraits::default() })
    };
    let spec = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: "d".to_owned(),
        parameters: json!({ "type": "object" }),
    };
    let all = ["read_file", "search_text", "edit_file", "write_file", "shell"].map(spec);
    let names = |own| -> Vec<String> {
        let shown = |tool: &Value| {
            format!("{}:{}", tool["type"].as_str().unwrap_or("ours"), tool["name"].as_str().unwrap())
        };
        tools(&all, own).iter().map(shown).collect()
    };
    assert_eq!(
        names(ProviderTools::Off),
        ["ours:read_file", "ours:search_text", "ours:edit_file", "ours:write_file", "ours:shell"]
    );
    let newest = "text_editor_20250728:str_replace_based_edit_tool";
    assert_eq!(names(ProviderTools::Of20250728), [newest, "ours:search_text", "bash_20250124:bash"]);
    assert_eq!(names(ProviderTools::Of20250124)[0], "text_editor_20250124:str_replace_editor");
    assert_eq!(names(ProviderTools::Of20250429)[0], "text_editor_20250429:str_replace_based_edit_tool");
    assert_eq!(
        tools(&all[4..], ProviderTools::Of20250728),
        [json!({ "type": "bash_20250124", "name": "bash" })],
        "the API refuses a description beside its own type"
    );
    // Without an editing tool, reading is not replaced by the editor.
    assert_eq!(tools(&all[..1], ProviderTools::Of20250728)[0]["name"], "read_file");
    let traits = ModelTraits { provider_tools: ProviderTools::Of20250728, ..ModelTraits::default() };
    let named = |name: &str| choice(&ToolChoice::Named(name.to_owned()), traits).unwrap()["name"].clone();
    assert_eq!(
        (named("shell"), named("edit_file"), named("think")),
        ("bash".into(), "str_replace_based_edit_tool".into(), "think".into())
    );
}

#[test]
fn the_computer_has_a_type_of_its_own_where_there_is_a_display() {
    let spec = ToolSpec {
        name: "computer".to_owned(),
        description: "d".to_owned(),
        parameters: json!({ "type": "object" }),
    };
    let display = Some(ComputerDisplay { number: 99, width: 800, height: 600 });
    let wired = |computer_tool, display| {
        tools(std::slice::from_ref(&spec), ModelTraits { computer_tool, display, ..ModelTraits::default() })
    };
    assert_eq!(
        wired(ComputerTool::Of20250124, display),
        [json!({
            "type": "computer_20250124", "name": "computer",
            "display_width_px": 800, "display_height_px": 600, "display_number": 99
        })]
    );
    assert_eq!(wired(ComputerTool::Of20251124, display)[0]["enable_zoom"], true);
    for (computer_tool, display) in [(ComputerTool::Off, display), (ComputerTool::Of20250124, None)] {
        assert_eq!(wired(computer_tool, display)[0]["type"], Value::Null);
    }
}
