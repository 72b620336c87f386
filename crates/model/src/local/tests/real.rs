//! An actual model: SmolLM2 from its file, at temperature 0. The content of replies is not tested, only that
//! they are streamed, match the schema, are counted, and are based on the same prompt as on llama.cpp's own
//! server. `cargo xtask local` installs the model and runs these tests.
#![expect(clippy::disallowed_methods, reason = "tests may bypass the injected interfaces")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::profile::Constraint;
use crate::{
    CancellationToken, Connection, Conversation, ErrorKind, Message, Model, ModelError, ModelTraits, Models,
    Reply, ReplyDelta, RequestOptions, StopReason, ToolChoice, ToolFormat, ToolSpec,
};

fn folder() -> PathBuf {
    let folder = std::env::var_os("FUSEE_REAL_MODEL");
    PathBuf::from(folder.expect("FUSEE_REAL_MODEL: run `cargo xtask local`, which installs it"))
}

fn name() -> String {
    format!("local:{}", folder().join("model.gguf").display())
}

fn opened(settings: &Connection) -> Arc<dyn Model> {
    // With more threads than free processors they wait for each other forever.
    let settings = Connection { threads: Some(1), ..settings.clone() };
    Models::new(|| SystemTime::UNIX_EPOCH).open(&name(), &settings).unwrap()
}

fn start_conversation(model: &dyn Model, system: &str, user: &str) -> Conversation {
    let mut conversation = Conversation::new(model.dialect(), system.to_owned(), Vec::new());
    conversation.push(Message::user(user.to_owned()));
    conversation
}

fn at_most(tokens: u32) -> RequestOptions {
    RequestOptions { temperature: Some(0.0), max_output_tokens: Some(tokens), ..RequestOptions::default() }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn ask(
    model: &dyn Model,
    conversation: &Conversation,
    options: &RequestOptions,
) -> Result<Reply, ModelError> {
    runtime().block_on(model.send(conversation, options, &mut |_| {}, &CancellationToken::new()))
}

#[test]
#[ignore = "needs the real model: cargo xtask local"]
fn a_second_turn_evaluates_only_what_is_new() {
    let model = opened(&Connection::default());
    let mut conversation = start_conversation(&*model, "You are brief.", "What is the capital of France?");
    let mut pieces = Vec::new();
    let mut sink = |delta: ReplyDelta<'_>| match delta {
        ReplyDelta::Text(text) => pieces.push(text.to_owned()),
        other => assert_eq!(other, ReplyDelta::Started),
    };
    let cancel = CancellationToken::new();
    let options = at_most(40);
    let first = runtime().block_on(model.send(&conversation, &options, &mut sink, &cancel)).unwrap();
    assert!(!first.text.trim().is_empty(), "{first:?}");
    assert!(pieces.len() > 3, "{pieces:?}");
    assert_eq!(pieces.concat(), first.text);
    let before = first.usage.unwrap();
    assert!(before.input_tokens > 20 && before.output_tokens > 3, "{before:?}");
    let again = ask(&*model, &conversation, &options).unwrap();
    assert_eq!(again.text, first.text);
    assert_eq!(again.usage.unwrap().cached_tokens, before.input_tokens - 1);
    conversation.push(first.into_message());
    conversation.push(Message::user("And of Italy?".to_owned()));
    let after = ask(&*model, &conversation, &options).unwrap().usage.unwrap();
    assert!(
        after.cached_tokens > before.input_tokens,
        "its own reply is kept too: {before:?} then {after:?}"
    );
    assert!(after.input_tokens > after.cached_tokens, "{after:?}");
}

#[test]
#[ignore = "needs the real model: cargo xtask local"]
fn a_reply_ends_at_its_limit_when_it_is_cancelled_and_where_the_context_does() {
    let settings = Connection { context_tokens: Some(256), ..Connection::default() };
    let model = opened(&settings);
    assert_eq!(runtime().block_on(model.context_tokens()), Some(256));
    let conversation = start_conversation(&*model, "", "Tell me a long story about a fox.");
    let cut = ask(&*model, &conversation, &at_most(5)).unwrap();
    assert_eq!((cut.stop, cut.usage.unwrap().output_tokens), (StopReason::Length, 5));

    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let mut seen = 0;
    let mut sink = |delta: ReplyDelta<'_>| {
        seen += usize::from(matches!(delta, ReplyDelta::Text(_)));
        if seen == 3 {
            stop.cancel();
        }
    };
    let begun = Instant::now();
    let options = at_most(200);
    let outcome = runtime().block_on(model.send(&conversation, &options, &mut sink, &cancel));
    assert_eq!(outcome.unwrap_err(), ModelError::cancelled());
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(seen < 100, "{seen}");
    assert_eq!(
        ask(&*model, &conversation, &at_most(5)).unwrap().text,
        cut.text,
        "it goes on as if nothing had been"
    );

    let full = ask(&*model, &conversation, &at_most(10_000)).unwrap();
    let usage = full.usage.unwrap();
    assert!(full.stop == StopReason::End || usage.held() >= 256, "{full:?}");
    let long = start_conversation(&*model, "", &"word ".repeat(400));
    let error = ask(&*model, &long, &at_most(5)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Overflow);
    assert!(error.message.ends_with("which exceeds the available context size (256 tokens)"), "{error}");
}

fn tool(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: "A tool.".to_owned(), parameters }
}

#[test]
#[ignore = "needs the real model: cargo xtask local"]
fn a_reply_is_held_to_a_schema_and_to_the_tool_that_is_open() {
    let traits = ModelTraits {
        tool_format: ToolFormat::Schema,
        constraint: Constraint::LlamaCpp,
        ..ModelTraits::default()
    };
    let model = opened(&Connection { traits, ..Connection::default() });
    let city = json!({
        "type": "object", "properties": { "city": { "enum": ["Paris", "Rome"] } }, "required": ["city"],
        "additionalProperties": false,
    });
    let write = json!({
        "type": "object", "properties": { "path": { "type": "string" }, "content": { "type": "string" } },
        "required": ["path", "content"],
    });
    let tools = vec![tool("map", city), tool("write_file", write)];
    let mut conversation = Conversation::new(model.dialect(), "You call tools.".to_owned(), tools);
    conversation.push(Message::user("Write hello into a.txt.".to_owned()));
    let named =
        |name: &str| RequestOptions { tool_choice: ToolChoice::Named(name.to_owned()), ..at_most(200) };
    let reply = ask(&*model, &conversation, &named("map")).unwrap();
    let [call] = reply.tool_calls.as_slice() else { panic!("{reply:?}") };
    assert_eq!(call.name, "map");
    assert!(["{\"city\":\"Paris\"}", "{\"city\":\"Rome\"}"].contains(&call.arguments.as_str()), "{call:?}");

    // The long text of a call is a separate block, under a grammar that ends it.
    let reply = ask(&*model, &conversation, &named("write_file")).unwrap();
    match reply.tool_calls.as_slice() {
        [call] => {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
            assert!(arguments["path"].is_string() && arguments["content"].is_string(), "{arguments}");
        }
        calls => assert!(calls.is_empty() && reply.stop == StopReason::Length, "{reply:?}"),
    }

    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"], "additionalProperties": false });
    let options = RequestOptions { output_schema: Some(schema), ..at_most(60) };
    let reply = ask(&*model, &start_conversation(&*model, "", "How many legs has a dog?"), &options).unwrap();
    let answer: Value = serde_json::from_str(&reply.text).unwrap();
    assert!(answer["n"].is_i64(), "{answer}");
}

/// llama.cpp's own server with the same file; killed on drop.
struct Served {
    child: Child,
    port: u16,
}

impl Served {
    fn start() -> Served {
        let folder = folder();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testkit/real_model/serve.py");
        let child = Command::new(folder.join("venv/bin/python"))
            .args([script.as_ref(), folder.join("model.gguf").as_os_str()])
            .args([port.to_string(), "4096".to_owned()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let served = Served { child, port };
        let begun = Instant::now();
        while !served.is_ready() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the server did not come up");
            std::thread::sleep(Duration::from_millis(100));
        }
        served
    }

    fn is_ready(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let mut answer = String::new();
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n").is_ok()
            && stream.read_to_string(&mut answer).is_ok()
            && answer.contains(" 200 ")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs the real model: cargo xtask local"]
fn it_reads_the_same_prompt_as_the_server_and_begins_alike() {
    let served = Served::start();
    let base_url = Some(format!("http://127.0.0.1:{}/v1", served.port));
    let there = Models::new(|| SystemTime::UNIX_EPOCH)
        .open("llama.cpp:smollm2", &Connection { base_url, ..Connection::default() })
        .unwrap();
    let here = opened(&Connection::default());
    let options = at_most(3);
    for request in ["What is the capital of France?", "Count from one to five.", "Wer war Goethe? ä ö ü 😀"]
    {
        let conversation = start_conversation(&*here, "You are brief.", request);
        let theirs = ask(&*there, &conversation, &options).unwrap();
        let ours = ask(&*here, &conversation, &options).unwrap();
        let tokens = |reply: &Reply| reply.usage.map(|usage| usage.input_tokens);
        assert_eq!(tokens(&ours), tokens(&theirs), "{request}");
        // Only the first word: the server is another build of llama.cpp, and the replies diverge after a few
        // words.
        let begins = |reply: &Reply| reply.text.split_whitespace().next().map(str::to_owned);
        assert_eq!(begins(&ours), begins(&theirs), "{request}");
    }
}
