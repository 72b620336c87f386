//! Servers whose context is smaller than `max_tokens`: the conversation is compacted to the size that the server
//! states, or to half, and the run goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::server::{Message, Reply, Server};
use serde_json::json;

use crate::flows::report;
use crate::support::run_on;

/// How servers report an overflow; `N` is the context size and `M` the size of the request.
const WORDINGS: &[(&str, u16, &str)] = &[
    (
        "OpenAI",
        400,
        "This model's maximum context length is N tokens. However, your messages resulted in M tokens.",
    ),
    ("Anthropic", 400, "prompt is too long: M tokens > N maximum"),
    ("llama.cpp", 400, "request (M tokens) exceeds the available context size (N tokens), try increasing it"),
    (
        "vLLM",
        400,
        "You passed M input tokens. However, the model's context length is only N tokens. Please reduce the length of the input prompt.",
    ),
    (
        "Mistral",
        400,
        "Prompt contains M tokens and 0 draft tokens, too large for model with N maximum context length",
    ),
    ("Gemini", 400, "The input token count (M) exceeds the maximum number of tokens allowed (N)."),
    ("xAI", 400, "This model's maximum prompt length is N but the request contains M tokens."),
    // These state no size.
    (
        "OpenAI responses",
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    ("Ollama", 500, "the input length exceeds the context length"),
];

/// Reads this many files, each a third of the context, and then answers.
const READS: usize = 8;

fn project(window: usize) -> Project {
    let text = "a line of a file that is read once and not needed again\n".repeat(window * 4 / 3 / 56);
    let settings = "tools = [\"read_file\"]\n";
    let named = |n| format!("part{n}.txt");
    (0..READS).fold(Project::new().with("fusee.toml", settings), |project, n| {
        project.with(&named(n), &format!("{}\n{text}", named(n)))
    })
}

/// A server that rejects requests of more than `window` tokens, at four bytes a token. Counts the rejections.
fn server(window: usize, status: u16, wording: &'static str) -> (Server, Arc<AtomicUsize>) {
    let rejections = Arc::new(AtomicUsize::new(0));
    let (counter, mut replies) = (Arc::clone(&rejections), 0);
    let server = Server::with_answer_check(move |_, request| {
        let tokens = request.body_text().len() / 4;
        if tokens > window {
            counter.fetch_add(1, Ordering::Relaxed);
            let message = wording.replace('N', &window.to_string()).replace('M', &tokens.to_string());
            return Reply::error(status, &message).prepare();
        }
        replies += 1;
        let message = match replies {
            n if n <= READS => Message::call("read_file", json!({"path": format!("part{}.txt", n - 1)})),
            _ => Message::text("Read them all."),
        };
        message.stream().prepare()
    });
    (server, rejections)
}

#[test]
fn a_conversation_is_compacted_to_what_the_server_accepts_in_every_wording() {
    for (who, status, wording) in WORDINGS {
        for window in [4_096, 8_192, 32_768] {
            let case = format!("{who}, {window} tokens");
            let project = project(window);
            let (server, rejections) = server(window, *status, wording);
            let outcome = run_on(&project, &server).run();
            assert_eq!(outcome.code, Some(0), "{case}: {}", outcome.stdout);
            let events = outcome.events();
            assert_eq!(events.last().unwrap()["answer"], "Read them all.", "{case}");
            assert_eq!(report(&events)["tool_call_counts"], json!({"read_file": READS}), "{case}");
            assert!(!of_type(&events, "compaction").is_empty(), "{case}");
            // What the server accepts is remembered, so later turns are compacted in time.
            let rejected = rejections.load(Ordering::Relaxed);
            assert!((1..=3).contains(&rejected), "{case}: {rejected} rejections");
        }
    }
}

#[test]
fn a_single_result_larger_than_the_context_is_shortened() {
    let project = Project::new()
        .with("fusee.toml", "tools = [\"read_file\"]\n")
        .with("part0.txt", &"a very long file in many lines\n".repeat(1_000));
    let server = Server::with_answer_check(|n, request| {
        let tokens = request.body_text().len() / 4;
        let reply = match n {
            0 => Message::call("read_file", json!({"path": "part0.txt"})).stream(),
            _ if tokens > 4_096 => {
                Reply::error(400, &format!("prompt is too long: {tokens} tokens > 4096 maximum"))
            }
            _ => Message::text("Long.").stream(),
        };
        reply.prepare()
    });
    let events = run_on(&project, &server).run().exits(0).events();
    assert_eq!(events.last().unwrap()["answer"], "Long.");
    let last = server.requests().last().unwrap().arrived.body_text();
    assert!(last.contains("cut to save context"), "{last}");
}

#[test]
fn later_stages_know_what_the_server_accepts() {
    let window = 8_192;
    let project = project(window);
    project.write(
        "fusee.toml",
        "tools = [\"read_file\"]\n[[flow]]\nid = \"one\"\nallow_missing_done = true\n[[flow]]\nid = \"two\"\nallow_missing_done = true\n",
    );
    let rejections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&rejections);
    let mut replies = 0;
    let server = Server::with_answer_check(move |_, request| {
        let tokens = request.body_text().len() / 4;
        if tokens > window {
            counter.fetch_add(1, Ordering::Relaxed);
            return Reply::error(400, &format!("prompt is too long: {tokens} tokens > {window} maximum"))
                .prepare();
        }
        replies += 1;
        let message = match replies % 6 {
            0 => Message::text("Done."),
            n => Message::call("read_file", json!({"path": format!("part{n}.txt")})),
        };
        message.stream().prepare()
    });
    let events = run_on(&project, &server).run().exits(0).events();
    assert_eq!(rejections.load(Ordering::Relaxed), 1);
    assert_eq!(of_type(&events, "flow_stage_report").len(), 2);
}

#[test]
fn a_conversation_that_cannot_be_shortened_ends_with_the_servers_words() {
    let project = Project::new();
    let server = Server::with_answer_check(|_, _| {
        Reply::error(400, "prompt is too long: 9 tokens > 8 maximum").prepare()
    });
    let outcome = run_on(&project, &server).run().exits(3);
    let last = outcome.events().pop().unwrap();
    let message =
        "prompt is too long: 9 tokens > 8 maximum (the conversation cannot be shortened any further)";
    assert_eq!(last["error"], json!({"code": "TOKEN_LIMIT", "reason": "context", "message": message}));
    assert_eq!(server.requests().len(), 1);
}
