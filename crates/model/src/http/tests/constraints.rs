//! The tool formats `schema` and `text` on a real server: the requests sent and the handling of replies.

use serde_json::{Value, json};

use super::server::{Act, Server, response, streamed};
use super::{DONE, STOP, open, settings};
use crate::profile::{Constraint, ToolFormat};
use crate::{
    AllowedOutput, AllowedTool, CancellationToken, Connection, Conversation, Message, ModelError,
    ModelTraits, Reply, ReplyDelta, RequestOptions, StopReason, ToolCall, ToolChoice, ToolSpec, Usage,
};

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, description: &str, properties: Value, required: Value| ToolSpec {
        name: name.into(),
        description: description.into(),
        parameters: json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false}),
    };
    let text = json!({"type": "string"});
    vec![
        tool(
            "read_file",
            "Reads. Says more.",
            json!({"path": text, "limit": {"type": "integer"}}),
            json!(["path"]),
        ),
        tool("write_file", "Writes.", json!({"path": text, "content": text}), json!(["path", "content"])),
        tool(
            "edit_file",
            "Edits.",
            json!({"path": text, "old": text, "new": text}),
            json!(["path", "old", "new"]),
        ),
    ]
}

fn traits(tool_format: ToolFormat, constraint: Constraint) -> ModelTraits {
    ModelTraits { tool_format, constraint, ..ModelTraits::default() }
}

/// A stream with this text.
fn said(text: &str, tokens: (u64, u64)) -> Vec<Act> {
    let chunk = json!({"choices": [{"delta": {"content": text}}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": tokens.0, "completion_tokens": tokens.1}});
    streamed(&[&format!("data: {chunk}\n\n"), STOP, &format!("data: {usage}\n\n"), DONE])
}

struct Asked {
    reply: Result<Reply, ModelError>,
    output: Vec<String>,
    bodies: Vec<Value>,
    conversation: Conversation,
}

async fn ask(
    traits: ModelTraits,
    history: Vec<Message>,
    options: &RequestOptions,
    answers: Vec<Vec<Act>>,
) -> Asked {
    let server = Server::start(answers).await;
    let model = open(&Connection { traits, ..settings(&server) });
    let mut conversation = Conversation::new(model.dialect(), "Be brief.".into(), tools());
    conversation.push(Message::user("Go."));
    for message in history {
        conversation.push(message);
    }
    let mut output = Vec::new();
    let mut sink = |delta: ReplyDelta<'_>| output.push(format!("{delta:?}"));
    let reply = model.send(&conversation, options, &mut sink, &CancellationToken::new()).await;
    let bodies = server.requests().iter().map(|request| body(request)).collect();
    Asked { reply, output, bodies, conversation }
}

fn body(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn header(tool: &str, arguments: Value) -> String {
    json!({"thought": "so", "tool": tool, "arguments": arguments}).to_string()
}

fn schema_of(body: &Value) -> &Value {
    &body["response_format"]["json_schema"]["schema"]
}

/// The tools that a schema allows to call.
fn open_names(schema: &Value) -> Vec<&str> {
    let alternatives = schema["anyOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice);
    alternatives.iter().map(|one| one["properties"]["tool"]["const"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_short_call_is_one_request_under_the_union_of_the_tools() {
    let asked = ask(
        traits(ToolFormat::Schema, Constraint::LlamaCpp),
        vec![],
        &RequestOptions::default(),
        vec![said(&header("read_file", json!({"path": "a.py"})), (90, 9))],
    )
    .await;
    let reply = asked.reply.unwrap();
    let call =
        ToolCall { id: "call_1_0".into(), name: "read_file".into(), arguments: "{\"path\":\"a.py\"}".into() };
    assert_eq!(reply.tool_calls, [call]);
    assert_eq!((reply.text.as_str(), reply.stop), ("", StopReason::ToolCalls));
    assert_eq!(reply.reasoning.unwrap().text, "so");
    assert_eq!(
        asked.output,
        [
            "Started",
            "Reasoning(\"so\")",
            "ToolCall { index: 0, name: \"read_file\" }",
            "ToolArguments { index: 0, fragment: \"{\\\"path\\\":\\\"a.py\\\"}\" }",
        ]
    );
    let body = &asked.bodies[0];
    assert_eq!(open_names(schema_of(body)), ["read_file", "write_file", "edit_file", "answer"]);
    assert_eq!(
        schema_of(body)["anyOf"][1]["properties"]["arguments"],
        json!({"type": "object", "properties": {"path": {"type": "string", "maxLength": 500}}, "required": ["path"],
               "additionalProperties": false}),
        "the content is not part of the header"
    );
    assert_eq!(body.get("tools"), None);
    insta::assert_snapshot!(body["messages"][0]["content"].as_str().unwrap(), @r#"
    Be brief.

    # Tools

    Each reply is one call, written as JSON: {"thought": why, in a few words, "tool": its name, "arguments": {…}}. Where a tool takes a body, the body follows in a fenced block. To end, call `answer` with your text.

    - read_file(path: string, limit?: integer): Reads.
    - write_file(path: string): Writes. Body: the content.
    - edit_file(path: string): Edits. Body: <<<<<<< SEARCH
    old lines
    =======
    new lines
    >>>>>>> REPLACE
    "#);
}

#[tokio::test]
async fn code_comes_in_a_block_that_a_second_request_asks_for_on_the_same_prefix() {
    let code = "def f():\n    return \"x\"\n";
    let asked = ask(
        traits(ToolFormat::Schema, Constraint::LlamaCpp),
        vec![],
        &RequestOptions::default(),
        vec![
            said(&header("write_file", json!({"path": "a.py"})), (90, 9)),
            said(&format!("{code}```"), (100, 20)),
        ],
    )
    .await;
    let reply = asked.reply.unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&reply.tool_calls[0].arguments).unwrap(),
        json!({"path": "a.py", "content": code})
    );
    assert_eq!(
        asked.output,
        [
            "Started",
            "Reasoning(\"so\")",
            "ToolCall { index: 0, name: \"write_file\" }",
            r#"ToolArguments { index: 0, fragment: "{\"path\":\"a.py\",\"content\":\"" }"#,
            r#"ToolArguments { index: 0, fragment: "def f():\\n" }"#,
            r#"ToolArguments { index: 0, fragment: "    return \\\"x\\\"\\n" }"#,
            r#"ToolArguments { index: 0, fragment: "\"}" }"#,
        ]
    );
    let usage = Usage { input_tokens: 190, output_tokens: 29, held_tokens: 120, ..Usage::default() };
    assert_eq!((reply.usage.unwrap(), reply.usage.unwrap().held()), (usage, 120));
    let [first, second] = asked.bodies.as_slice() else { panic!("{:?}", asked.bodies) };
    let (first_messages, second_messages) =
        (first["messages"].as_array().unwrap(), second["messages"].as_array().unwrap());
    assert_eq!(second_messages[..2], first_messages[..]);
    let begun = format!("{}\n```python\n", header("write_file", json!({"path": "a.py"})));
    assert_eq!(second_messages[2], json!({"role": "assistant", "content": begun}));
    assert!(second["grammar"].as_str().unwrap().starts_with("root ::= line* \"```\" end\n"), "{second}");
    assert_eq!(second.get("response_format"), None);
    // The next request contains it exactly as the model wrote it, so the server's cache covers all of it.
    let mut conversation = asked.conversation;
    conversation.push(reply.into_message());
    let next: Value =
        serde_json::from_slice(&conversation.body(&RequestOptions::default()).to_vec()).unwrap();
    assert_eq!(next["messages"][2]["content"], json!(format!("{begun}{code}```")));
}

/// A model on llama.cpp's server that writes this file with this body.
async fn ask_to_write(path: &str, body: &str) -> Asked {
    let answers = vec![said(&header("write_file", json!({ "path": path })), (9, 9)), said(body, (9, 9))];
    let schema = traits(ToolFormat::Schema, Constraint::LlamaCpp);
    ask(schema, vec![], &RequestOptions::default(), answers).await
}

#[tokio::test]
async fn a_body_is_found_where_a_server_does_not_keep_to_the_grammar() {
    let code = "x = 1\n";
    for (said_of_it, content) in [
        (format!("{code}```\n"), code),
        (format!("```python\n{code}```\n"), code),
        (format!("Here it is:\n```python\n{code}```\nDone."), code),
        ("  ```x\n```\n".to_owned(), "  ```x\n"),
        ("`\n<\n```\n".to_owned(), "`\n<\n"),
        ("```\n".to_owned(), ""),
    ] {
        let asked = ask_to_write("a.py", &said_of_it).await;
        let arguments = asked.reply.unwrap().tool_calls.remove(0).arguments;
        assert_eq!(arguments, json!({"path": "a.py", "content": content}).to_string(), "{said_of_it}");
    }
}

#[tokio::test]
async fn the_grammar_of_a_body_knows_its_end_and_no_mark_of_another_form() {
    for (path, grammar) in [
        (
            "a.py",
            r#"root ::= line* "```" end
line ::= ([^`<\n] [^\n]* | "<"{1,6} ([^<\n] [^\n]*)? | "`"{1,2} ([^`\n] [^\n]*)?)? "\n"
end ::= "\n"? "\n"?
"#,
        ),
        (
            "a.md",
            r#"root ::= line* "````" end
line ::= ([^`<\n] [^\n]* | "<"{1,6} ([^<\n] [^\n]*)? | "`"{1,2} ([^`\n] [^\n]*)? | "```" ([^`\n] [^\n]*)?)? "\n"
end ::= "\n"? "\n"?
"#,
        ),
    ] {
        let asked = ask_to_write(path, "x\n````\n").await;
        assert_eq!(asked.bodies[1]["grammar"], grammar);
    }
}

#[tokio::test]
async fn each_server_is_held_to_a_schema_and_to_a_grammar_in_its_own_words() {
    let grammar = "root ::= line* \"```\" end\n";
    let none = Value::Null;
    for (provider, own_words) in
        [("llama.cpp", "grammar"), ("vllm", "structured_outputs"), ("ollama", ""), ("lmstudio", "")]
    {
        let profile = crate::Profiles::builtin().unwrap().resolve(Some(provider), "some-model");
        let asked = ask(
            ModelTraits { tool_format: ToolFormat::Schema, ..profile.traits() },
            vec![],
            &RequestOptions::default(),
            vec![
                said(&header("write_file", json!({"path": "a.py"})), (9, 9)),
                said(if own_words.is_empty() { "```python\nx\n```" } else { "x\n```" }, (9, 9)),
            ],
        )
        .await;
        let [first, second] = asked.bodies.as_slice() else { panic!("{provider}: {:?}", asked.bodies) };
        // Ollama converts this to its `format`.
        assert_eq!(first["response_format"]["type"], "json_schema", "{provider}");
        assert!(open_names(schema_of(first)).contains(&"write_file"), "{provider}");
        let begins = |field: &Value| field.as_str().is_some_and(|text| text.starts_with(grammar));
        match own_words {
            "grammar" => assert!(begins(&second["grammar"]), "{provider}: {second}"),
            "structured_outputs" => {
                assert!(begins(&second["structured_outputs"]["grammar"]), "{provider}: {second}");
                let goes_on = (&second["continue_final_message"], &second["add_generation_prompt"]);
                assert_eq!(goes_on, (&json!(true), &json!(false)), "{provider}");
            }
            _ => {
                assert_eq!((&second["grammar"], &second["structured_outputs"]), (&none, &none), "{provider}")
            }
        }
        let call = asked.reply.unwrap().tool_calls.remove(0);
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        assert_eq!(arguments, json!({"path": "a.py", "content": "x\n"}), "{provider}");
    }
}

#[tokio::test]
async fn where_there_is_no_grammar_the_block_is_asked_for_in_words() {
    let asked = ask(
        traits(ToolFormat::Schema, Constraint::ResponseFormat),
        vec![],
        &RequestOptions::default(),
        vec![
            said(&header("edit_file", json!({"path": "a.py"})), (9, 9)),
            said("Here:\n```\n<<<<<<< SEARCH\na\nb\n=======\nc\n>>>>>>> REPLACE\n```\nDone.", (9, 9)),
        ],
    )
    .await;
    let arguments = asked.reply.unwrap().tool_calls.remove(0).arguments;
    assert_eq!(
        serde_json::from_str::<Value>(&arguments).unwrap(),
        json!({"path": "a.py", "old": "a\nb", "new": "c"})
    );
    let last = asked.bodies[1]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "user");
    assert!(
        last["content"].as_str().unwrap().starts_with("Now the change in a.py, and nothing else"),
        "{last}"
    );
}

#[tokio::test]
async fn a_server_that_refuses_to_go_on_with_a_reply_is_asked_in_words() {
    let asked = ask(
        traits(ToolFormat::Schema, Constraint::LlamaCpp),
        vec![],
        &RequestOptions::default(),
        vec![
            said(&header("write_file", json!({"path": "a.txt"})), (9, 9)),
            response(
                "400 Bad Request",
                "content-type: application/json\r\n",
                "{\"error\":{\"message\":\"prefill is incompatible\"}}",
            ),
            said("```\nx\n```", (9, 9)),
        ],
    )
    .await;
    let arguments = asked.reply.unwrap().tool_calls.remove(0).arguments;
    assert_eq!(
        serde_json::from_str::<Value>(&arguments).unwrap(),
        json!({"path": "a.txt", "content": "x\n"})
    );
    assert_eq!(asked.bodies.len(), 3);
}

#[tokio::test]
async fn an_answer_is_text_like_any_other() {
    let asked = ask(
        traits(ToolFormat::Schema, Constraint::LlamaCpp),
        vec![],
        &RequestOptions::default(),
        vec![said(&header("answer", json!({"text": "It is 4."})), (9, 9))],
    )
    .await;
    let reply = asked.reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.tool_calls.len(), reply.stop), ("It is 4.", 0, StopReason::End));
    assert_eq!(asked.output.last().unwrap(), "Text(\"It is 4.\")");
}

#[tokio::test]
async fn a_gate_is_in_the_schema_and_not_in_the_prompt() {
    let answer = || vec![said(&header("answer", json!({"text": "x"})), (9, 9))];
    let schema = || traits(ToolFormat::Schema, Constraint::LlamaCpp);
    let gated = RequestOptions {
        open: Some(AllowedOutput {
            tools: vec![AllowedTool {
                name: "read_file".into(),
                paths: vec!["a.py".into(), "b.py".into()],
                bare: false,
            }],
            answer: false,
        }),
        ..RequestOptions::default()
    };
    let all = ask(schema(), vec![], &RequestOptions::default(), answer()).await.bodies.remove(0);
    let one = ask(schema(), vec![], &gated, answer()).await.bodies.remove(0);
    assert_eq!(open_names(schema_of(&one)), ["read_file"]);
    assert_eq!(
        schema_of(&one)["properties"]["arguments"]["properties"]["path"],
        json!({"enum": ["a.py", "b.py"]})
    );
    assert_eq!(one["messages"], all["messages"]);
    let forced =
        RequestOptions { tool_choice: ToolChoice::Named("edit_file".into()), ..RequestOptions::default() };
    assert_eq!(
        open_names(schema_of(&ask(schema(), vec![], &forced, answer()).await.bodies[0])),
        ["edit_file"]
    );
}

#[tokio::test]
async fn a_call_that_gave_the_same_result_twice_is_closed_for_once() {
    let call = |path: &str| Message::Assistant {
        text: String::new(),
        reasoning: None,
        tool_calls: vec![ToolCall {
            id: "c".into(),
            name: "read_file".into(),
            arguments: json!({"path": path}).to_string(),
        }],
    };
    let result = |content: &str| Message::Tool {
        call_id: "c".into(),
        name: "read_file".into(),
        content: content.into(),
        ok: true,
        images: vec![],
    };
    let answer = || vec![said(&header("answer", json!({"text": "x"})), (9, 9))];
    let schema = || traits(ToolFormat::Schema, Constraint::LlamaCpp);
    let twice = vec![call("a"), result("1"), call("a"), result("1")];
    let asked = ask(schema(), twice.clone(), &RequestOptions::default(), answer()).await;
    assert_eq!(open_names(schema_of(&asked.bodies[0])), ["write_file", "edit_file", "answer"]);
    let listed = AllowedTool { paths: vec!["a".into(), "b".into()], ..AllowedTool::from("read_file") };
    let options = RequestOptions {
        open: Some(AllowedOutput { tools: vec![listed], answer: true }),
        ..RequestOptions::default()
    };
    let asked = ask(schema(), twice, &options, answer()).await;
    assert_eq!(
        schema_of(&asked.bodies[0])["anyOf"][0]["properties"]["arguments"]["properties"]["path"],
        json!({"enum": ["b"]}),
        "only that path"
    );
    let other = vec![call("a"), result("1"), call("a"), result("2")];
    let asked = ask(schema(), other, &RequestOptions::default(), answer()).await;
    assert_eq!(open_names(schema_of(&asked.bodies[0])).len(), 4, "the result was another one");
}

#[tokio::test]
async fn a_server_that_ignores_the_schema_is_understood_all_the_same() {
    let schema = || traits(ToolFormat::Schema, Constraint::ResponseFormat);
    let text = "<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}</tool_call>";
    let asked = ask(schema(), vec![], &RequestOptions::default(), vec![said(text, (9, 9))]).await;
    assert_eq!(asked.reply.unwrap().tool_calls[0].name, "read_file");
    let asked = ask(schema(), vec![], &RequestOptions::default(), vec![said("Just words.", (9, 9))]).await;
    assert_eq!(asked.reply.unwrap().text, "Just words.");
}

#[tokio::test]
async fn a_header_that_the_limit_cut_is_asked_for_again_by_the_engine() {
    let cut = json!({"choices": [{"delta": {"content": "{\"thought\": \"lo"}, "finish_reason": "length"}]});
    let asked = ask(
        traits(ToolFormat::Schema, Constraint::LlamaCpp),
        vec![],
        &RequestOptions::default(),
        vec![streamed(&[&format!("data: {cut}\n\n"), DONE])],
    )
    .await;
    let reply = asked.reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.stop), ("", StopReason::Length));
}

#[tokio::test]
async fn text_tools_stand_in_the_prompt_and_calls_in_the_text() {
    let call =
        "Look.\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>";
    let asked = ask(
        traits(ToolFormat::Text, Constraint::ResponseFormat),
        vec![],
        &RequestOptions::default(),
        vec![said(call, (9, 9))],
    )
    .await;
    let reply = asked.reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.tool_calls[0].name.as_str()), ("Look.", "read_file"));
    assert_eq!(asked.output[1], "Text(\"Look.\\n\")");
    let mut conversation = asked.conversation;
    conversation.push(reply.into_message());
    for content in ["one", "two"] {
        conversation.push(Message::Tool {
            call_id: "c".into(),
            name: "read_file".into(),
            content: content.into(),
            ok: true,
            images: vec![],
        });
    }
    let next: Value =
        serde_json::from_slice(&conversation.body(&RequestOptions::default()).to_vec()).unwrap();
    assert_eq!(
        next["messages"].as_array().unwrap()[1..],
        [
            json!({"role": "user", "content": "Go."}),
            json!({"role": "assistant", "content":
                "Look.\n<tool_call>\n{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}\n</tool_call>"}),
            json!({"role": "user", "content": "Result of read_file:\none\n\nResult of read_file:\ntwo"}),
        ]
    );
    assert_eq!(next.get("tools"), None);
}

#[tokio::test]
async fn one_call_is_taken_where_the_profile_says_so() {
    let calls = "<tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>\n\
                 <tool_call>{\"name\":\"edit_file\",\"arguments\":{}}</tool_call>";
    let native = ModelTraits { text_calls: true, one_call: true, ..ModelTraits::default() };
    let asked = ask(native, vec![], &RequestOptions::default(), vec![said(calls, (9, 9))]).await;
    assert_eq!(asked.reply.unwrap().tool_calls.len(), 1);
    assert_eq!(asked.bodies[0]["parallel_tool_calls"], json!(false));
    assert_eq!(asked.bodies[0]["tools"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn text_is_not_searched_for_calls_unless_the_profile_says_so() {
    let call = "<tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>";
    let asked =
        ask(ModelTraits::default(), vec![], &RequestOptions::default(), vec![said(call, (9, 9))]).await;
    let reply = asked.reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.tool_calls.len()), (call, 0));
}
