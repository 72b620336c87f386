//! The three wire formats in the binary: endpoints, that each request begins with the bytes of the previous
//! one, that reasoning is sent back, that keys do not leak; and models that write their calls as text.

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Command, Project};
use fusee_testkit::server::{Message, Reply, Script, Server};
use serde_json::{Value, json};

use crate::support::{KEY, fusee, run_json};

/// A format as selected by the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Api {
    Chat,
    Responses,
    Anthropic,
}

const ALL: [Api; 3] = [Api::Chat, Api::Responses, Api::Anthropic];

impl Api {
    fn stream(self, message: &Message) -> Reply {
        match self {
            Api::Chat => message.stream(),
            Api::Responses => message.responses(),
            Api::Anthropic => message.anthropic(),
        }
    }

    fn run<'p>(self, project: &'p Project, server: &Server) -> Command<'p> {
        let (model, api, variable) = match self {
            Api::Chat => ("openai:m", "chat", "OPENAI_API_KEY"),
            Api::Responses => ("openai:m", "responses", "OPENAI_API_KEY"),
            Api::Anthropic => ("anthropic:m", "anthropic", "ANTHROPIC_API_KEY"),
        };
        run_json(project, model).args(["--api", api, "--base-url", &server.base_url()]).env(variable, KEY)
    }

    fn path(self) -> &'static str {
        match self {
            Api::Chat => "/v1/chat/completions",
            Api::Responses => "/v1/responses",
            Api::Anthropic => "/v1/messages",
        }
    }

    fn list(self) -> &'static str {
        if self == Api::Responses { "input" } else { "messages" }
    }
}

fn shell(n: usize) -> Message {
    let call = json!({"command": format!("echo {n} >> effects.txt")});
    Message::text(&format!("Step {n}."))
        .reasoning(&format!("thought {n}"))
        .and_call("shell", call)
        .usage(10, 5)
}

fn script(api: Api, count: usize) -> Script {
    (0..count)
        .map(|n| api.stream(&shell(n)))
        .chain([api.stream(&Message::text("Done.").usage(20, 1))])
        .collect()
}

#[test]
fn every_format_runs_a_task() {
    for api in ALL {
        let project = Project::new();
        let server = Server::start(script(api, 2));
        let events = api.run(&project, &server).run().exits(0).events();
        assert_eq!(project.read("effects.txt"), "0\n1\n", "{api:?}");
        let last = events.last().unwrap();
        assert_eq!((&last["answer"], &last["total_tokens"]), (&json!("Done."), &json!(51)), "{api:?}");
        let thoughts: Vec<&Value> =
            of_type(&events, "reasoning").iter().map(|event| &event["text"]).collect();
        assert_eq!(thoughts, ["thought 0", "thought 1"], "{api:?}");
        for request in server.requests() {
            assert_eq!(request.arrived.path, api.path());
        }
    }
}

#[test]
fn each_request_begins_with_the_bytes_of_the_one_before_in_every_format() {
    const MARK: &str = ",\"cache_control\":{\"type\":\"ephemeral\"}";
    for api in ALL {
        let project = Project::new();
        let server = Server::start(script(api, 5));
        api.run(&project, &server).run().exits(0);
        let requests = server.requests();
        let lists: Vec<Vec<String>> = requests.iter().map(|r| r.arrived.elements(api.list())).collect();
        for pair in lists.windows(2) {
            // Ignore the provider's cache markers.
            let bare = |list: &[String]| list.iter().map(|one| one.replace(MARK, "")).collect::<Vec<_>>();
            assert_eq!(bare(&pair[1][..pair[0].len()]), bare(&pair[0]), "{api:?}");
            assert!(pair[1].len() > pair[0].len());
        }
        let rest = |n: usize| {
            let mut body = requests[n].arrived.json();
            body[api.list()] = json!(null);
            body.to_string()
        };
        assert!(
            (1..requests.len()).all(|n| rest(n) == rest(0)),
            "{api:?}: what surrounds the messages changes"
        );
    }
}

#[test]
fn the_end_of_what_is_sent_to_anthropic_carries_the_cache_mark_and_nothing_else_does() {
    let project = Project::new();
    let server = Server::start(script(Api::Anthropic, 3));
    Api::Anthropic.run(&project, &server).run().exits(0);
    for request in server.requests() {
        let body = request.arrived.json();
        let marks = request.arrived.body_text().matches("cache_control").count();
        assert_eq!(marks, 2, "the system prompt's and the last block's");
        let last = body["messages"].as_array().unwrap().last().unwrap()["content"]
            .as_array()
            .unwrap()
            .last()
            .unwrap();
        assert_eq!(last["cache_control"], json!({"type": "ephemeral"}));
        assert_eq!(request.arrived.header("x-api-key"), Some(KEY));
        assert_eq!(request.arrived.header("authorization"), None);
        assert!(body["max_tokens"].as_u64().unwrap() > 1000, "{}", body["max_tokens"]);
    }
}

#[test]
fn reasoning_goes_back_as_it_came() {
    for (api, sealed) in [(Api::Responses, "sealed:thought 0"), (Api::Anthropic, "signed:thought 0")] {
        let project = Project::new();
        let server = Server::start(script(api, 2));
        api.run(&project, &server).run().exits(0);
        for request in &server.requests()[1..] {
            assert!(request.arrived.body_text().contains(sealed), "{api:?}: {}", request.arrived.body_text());
        }
        assert!(!server.requests()[0].arrived.body_text().contains("thought 0"));
    }
}

#[test]
fn reasoning_is_not_sent_again_where_the_settings_say_so() {
    let stage = "[[flow]]\nid = \"a\"\nallow_missing_done = true\n";
    for (settings, is_sent) in [
        (String::new(), true),
        ("history_strip_thinking = true\n".to_owned(), false),
        (stage.to_owned(), true),
        (format!("flow_history_strip_thinking = true\n{stage}"), false),
        (format!("flow_history_strip_thinking = true\n{stage}history_strip_thinking = false\n"), true),
        (format!("{stage}history_strip_thinking = true\n"), false),
    ] {
        let project = Project::new().with("fusee.toml", &settings);
        let server = Server::start(script(Api::Anthropic, 2));
        Api::Anthropic.run(&project, &server).run().exits(0);
        let last = server.requests().last().unwrap().arrived.body_text();
        assert_eq!(last.contains("signed:thought 0"), is_sent, "{settings}: {last}");
    }
}

#[test]
fn a_provider_speaks_its_own_format_unless_told_otherwise() {
    for (model, variable, api) in
        [("openai:m", "OPENAI_API_KEY", Api::Responses), ("anthropic:m", "ANTHROPIC_API_KEY", Api::Anthropic)]
    {
        let project = Project::new();
        let server = Server::start([api.stream(&Message::text("Done."))]);
        let base = server.base_url().replace("/v1", if api == Api::Anthropic { "" } else { "/v1" });
        run_json(&project, model).args(["--base-url", &base]).env(variable, KEY).run().exits(0);
        assert_eq!(server.requests()[0].arrived.path, api.path());
    }
}

#[test]
fn a_run_in_another_format_is_resumed_and_replayed_in_it() {
    for api in [Api::Responses, Api::Anthropic] {
        let project = Project::new();
        let wait = Message::call("shell", json!({"command": "echo 0 >> effects.txt; sleep 60"}));
        let server = Server::start([api.stream(&wait), api.stream(&Message::text("Done."))]);
        let variable = if api == Api::Anthropic { "ANTHROPIC_API_KEY" } else { "OPENAI_API_KEY" };
        let mut running = api.run(&project, &server).args(["--run-id", "r"]).start();
        while project.read("effects.txt").is_empty() {
            assert!(running.is_running());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        running.signal(rustix::process::Signal::KILL);
        assert!(running.wait().was_killed());
        // The format is stored with the run.
        let resumed = fusee(&project).args(["resume", "r"]).env(variable, KEY).run().exits(0);
        assert_eq!((resumed.stdout.as_str(), server.requests().len()), ("Done.\n", 2));
        assert_eq!(project.read("effects.txt"), "0\n");
        fusee(&project).args(["replay", "r"]).env(variable, KEY).run().exits(0);
    }
}

#[test]
fn keys_are_nowhere_but_in_the_request() {
    for api in ALL {
        let project = Project::new();
        let quoted = Reply::error(400, &format!("the key {KEY} is not known here"));
        let server = Server::start([api.stream(&shell(0)), quoted]);
        let outcome = api.run(&project, &server).args(["--record", "c.jsonl"]).run().exits(1);
        assert!(!outcome.stdout.contains(KEY) && !outcome.stderr.contains(KEY), "{api:?}");
        assert!(project.read("c.jsonl").contains("[key]"), "{api:?}: the server's words are recorded");
        for file in project.all_files() {
            let bytes = std::fs::read(&file).unwrap();
            let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
            assert!(!found, "{api:?}: the key is in {}", file.display());
        }
    }
}

/// `fusee run` on a local server.
fn local<'p>(project: &'p Project, server: &Server) -> Command<'p> {
    run_json(project, "llama.cpp:m").args(["--base-url", &server.base_url()])
}

#[test]
fn a_call_that_a_local_model_writes_as_text_is_made() {
    let arguments = "{\"command\": \"echo 0 >> effects.txt\"}";
    for text in [
        format!("<tool_call>\n{{\"name\": \"shell\", \"arguments\": {arguments}}}\n</tool_call>"),
        "<function=shell>\n<parameter=command>\necho 0 >> effects.txt\n</parameter>\n</function>".to_owned(),
        format!("```json\n{{\"name\": \"shell\", \"arguments\": {arguments}}}\n```"),
        format!("<|channel|>commentary to=functions.shell <|constrain|>json<|message|>{arguments}<|call|>"),
    ] {
        let project = Project::new();
        let server = Server::start([Message::text(&text).stream(), Message::text("Done.").stream()]);
        let events = local(&project, &server).run().exits(0).events();
        assert_eq!(project.read("effects.txt"), "0\n", "{text}");
        let second = server.requests()[1].arrived.json();
        assert_eq!(second["messages"][2]["tool_calls"][0]["function"]["name"], "shell", "{text}");
        assert!(
            of_type(&events, "message")
                .iter()
                .all(|event| !event["text"].as_str().unwrap().contains("shell"))
        );
        fusee(&project).args(["replay", events[0]["run"].as_str().unwrap()]).run().exits(0);
    }
}

#[test]
fn text_that_looks_like_a_call_is_an_answer_elsewhere_and_where_it_is_quoted() {
    let call = "<tool_call>{\"name\": \"shell\", \"arguments\": {\"command\": \"echo 0 >> effects.txt\"}}</tool_call>";
    let project = Project::new();
    let server = Server::start([Message::text(call).stream()]);
    Api::Chat.run(&project, &server).run().exits(0);
    assert_eq!(project.read("effects.txt"), "");
    let quoted = format!("A call is written so:\n```\n{call}\n```\nand nothing else.");
    let server = Server::start([Message::text(&quoted).stream()]);
    let events = local(&project, &server).run().exits(0).events();
    assert_eq!(events.last().unwrap()["answer"], json!(quoted));
    assert_eq!(project.read("effects.txt"), "");
}

#[test]
fn replies_under_a_schema_make_calls_and_end_with_an_answer() {
    let header = |tool: &str, arguments: Value| {
        Message::text(&json!({"thought": "so", "tool": tool, "arguments": arguments}).to_string())
            .usage(10, 5)
            .stream()
    };
    let project = Project::new();
    let server = Server::start([
        header("write_file", json!({"path": "a.py"})),
        Message::text("print(\"\\n\")\n```").usage(20, 7).stream(),
        header("answer", json!({"text": "Written."})),
    ]);
    let command = local(&project, &server).env("FUSEE_TOOL_FORMAT", "schema").args(["--run-id", "s"]);
    let events = command.run().exits(0).events();
    assert_eq!(project.read("a.py"), "print(\"\\n\")\n");
    let last = events.last().unwrap();
    assert_eq!(
        (&last["answer"], &last["total_tokens"], &last["total_turns"]),
        (&json!("Written."), &json!(57), &json!(2))
    );
    let requests = server.requests();
    let messages: Vec<Vec<String>> = requests.iter().map(|request| request.arrived.messages()).collect();
    assert_eq!(messages[1][..2], messages[0][..], "the second half is asked for on the same prefix");
    assert_eq!(messages[2][..2], messages[0][..]);
    // A replay needs neither server nor key, and finds no difference.
    drop(server);
    fusee(&project).args(["replay", "s"]).run().exits(0);
}
