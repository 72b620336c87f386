//! Images that a model reads: in every wire format, by profile, and unchanged after a kill and in a replay.

use std::fs;
use std::time::Duration;

use fusee_testkit::events::{kept, of_type};
use fusee_testkit::project::{Command, Project};
use fusee_testkit::server::{Message, Reply, Script, Server};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{KEY, fusee, run_json};

/// A GIF with one pixel, as file content and as encoded in requests.
const GIF: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
const ENCODED: &str = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==";

type Stream = fn(&Message) -> Reply;

/// A model with vision for each format, and a model of the same format without.
const SEEING: [(&str, &str, &str, Stream); 3] = [
    ("openai:gpt-4o", "openai:gpt-3.5-turbo", "chat", Message::stream),
    ("openai:gpt-5", "openai:o3-mini", "responses", Message::responses),
    ("anthropic:claude-sonnet-4-5", "", "anthropic", Message::anthropic),
];

fn project() -> Project {
    let project = Project::new();
    fs::write(project.dir().join("dot.gif"), GIF).unwrap();
    project
}

fn on<'p>(project: &'p Project, model: &str, api: &str, server: &Server) -> Command<'p> {
    with_keys(run_json(project, model).args([
        "--api",
        api,
        "--base-url",
        &server.base_url(),
        "--run-id",
        "seen",
    ]))
}

fn with_keys(command: Command<'_>) -> Command<'_> {
    command.env("OPENAI_API_KEY", KEY).env("ANTHROPIC_API_KEY", KEY)
}

fn look() -> Message {
    Message::call("read_file", json!({"path": "dot.gif"}))
}

fn script(stream: Stream) -> Script {
    let replies = [look(), Message::call("think", json!({"thought": "a dot"})), Message::text("One dot.")];
    replies.iter().map(stream).collect()
}

#[test]
fn a_picture_is_sent_once_and_stands_where_it_stood() {
    for (model, _, api, stream) in SEEING {
        let (project, server) = (project(), Server::start(script(stream)));
        let events = on(&project, model, api, &server).run().exits(0).events();
        let result = of_type(&events, "tool_result")[0];
        assert_eq!(
            result["content"],
            json!("`dot.gif` (GIF image, 1 × 1 pixels, 43 bytes) is shown with this answer.")
        );
        let list = if api == "responses" { "input" } else { "messages" };
        let bare = |list: Vec<String>| -> Vec<String> {
            let mark = ",\"cache_control\":{\"type\":\"ephemeral\"}";
            list.iter().map(|one| one.replace(mark, "")).collect()
        };
        let sent: Vec<Vec<String>> =
            server.requests().iter().map(|request| bare(request.arrived.elements(list))).collect();
        let times = |list: &[String]| list.concat().matches(ENCODED).count();
        assert_eq!(sent.iter().map(|list| times(list)).collect::<Vec<_>>(), [0, 1, 1], "{api}");
        for pair in sent.windows(2) {
            assert_eq!(pair[1][..pair[0].len()], pair[0], "{api}");
        }
        let first = fusee(&project).args(["replay", "seen", "--json"]).run().exits(0).events();
        assert_eq!(kept(&first), kept(&events), "{api}");
    }
}

#[test]
fn a_model_that_sees_nothing_reads_what_there_is() {
    for (_, model, api, stream) in SEEING.into_iter().filter(|(_, blind, ..)| !blind.is_empty()) {
        let (project, server) = (project(), Server::start(script(stream)));
        let events = on(&project, model, api, &server).run().exits(0).events();
        assert_eq!(
            of_type(&events, "tool_result")[0]["content"],
            json!(
                "`dot.gif` is not text (GIF image, 1 × 1 pixels, 43 bytes), and it is not shown: this model takes no images."
            )
        );
        assert!(server.requests().iter().all(|request| !request.arrived.body_text().contains("R0lGOD")));
    }
}

#[test]
fn after_a_kill_the_model_sees_what_it_saw_though_the_file_is_gone() {
    for (model, _, api, stream) in SEEING {
        let project = project();
        let rest = Script::new().then(stream(&look())).then(Reply::silence());
        let server = Server::start(rest.then(stream(&Message::text("One dot."))));
        let running = on(&project, model, api, &server).start();
        let before = server.wait_for_requests(2, Duration::from_secs(20)).pop().unwrap();
        running.signal(Signal::KILL);
        assert!(running.wait().was_killed());
        fs::remove_file(project.dir().join("dot.gif")).unwrap();
        with_keys(fusee(&project).args(["resume", "seen"])).run().exits(0);
        let after = server.requests().pop().unwrap();
        assert!(before.arrived.body_text().contains(ENCODED), "{api}");
        assert_eq!(before.arrived.body_text(), after.arrived.body_text(), "{api}");
    }
}

#[test]
fn a_users_profile_says_whether_a_model_sees() {
    let project = project();
    let folder = project.home().join(".config/fusee");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("profiles.toml"), "[[profile]]\nmodel = [\"gpt-4o\"]\nimages = false\n").unwrap();
    let server = Server::start(script(Message::stream));
    on(&project, "openai:gpt-4o", "chat", &server).run().exits(0);
    assert!(server.requests().iter().all(|request| !request.arrived.body_text().contains("R0lGOD")));
}

#[test]
fn an_image_in_a_message_is_sent_with_it_and_stays_in_the_conversation() {
    for (model, blind, api, stream) in SEEING {
        let (project, server) = (
            project(),
            Server::start(
                [Message::text("A dot."), Message::text("Still a dot.")]
                    .iter()
                    .map(stream)
                    .collect::<Script>(),
            ),
        );
        let absolute = project.home().join("far.gif");
        fs::write(&absolute, GIF).unwrap();
        let chat = |model: &str, server: &Server, text: &str| {
            let command = fusee(&project).args(["--plain", "-m", model, "--api", api]);
            let command = command.args(["--base-url", &server.base_url()]).stdin(text);
            with_keys(command).run().exits(0)
        };
        let text = format!("what is @dot.gif and @{}?\nand now?\n", absolute.display());
        chat(model, &server, &text);
        let sent = server.requests();
        for request in &sent {
            assert_eq!(request.arrived.body_text().matches(ENCODED).count(), 2, "{api}");
        }
        let list = if api == "responses" { "input" } else { "messages" };
        let first: Vec<serde_json::Value> =
            sent[0].arrived.elements(list).iter().map(|one| serde_json::from_str(one).unwrap()).collect();
        let content = first.last().unwrap()["content"].as_array().unwrap();
        let kinds: Vec<&str> = content.iter().map(|part| part["type"].as_str().unwrap()).collect();
        let expected = match api {
            "chat" => ["text", "image_url", "image_url"],
            "responses" => ["input_text", "input_image", "input_image"],
            _ => ["image", "image", "text"],
        };
        assert_eq!(kinds, expected, "{api}");
        // The run needs neither the file nor the server any more.
        fs::remove_file(project.dir().join("dot.gif")).unwrap();
        fusee(&project).args(["replay", "last"]).run().exits(0);
        fusee(&project).args(["replay", "last~1"]).run().exits(0);
        if !blind.is_empty() {
            fs::write(project.dir().join("dot.gif"), GIF).unwrap();
            let server = Server::start([Message::text("No.")].iter().map(stream).collect::<Script>());
            let said = chat(blind, &server, "what is @dot.gif?\n");
            let all = format!("{}{}", said.stdout, said.stderr);
            assert!(all.contains("@dot.gif not attached: this model does not accept images"), "{all}");
            assert!(!server.requests()[0].arrived.body_text().contains("R0lGOD"));
        }
    }
}

#[test]
fn an_image_in_the_request_of_a_run_is_sent_with_it() {
    for (model, blind, api, stream) in SEEING {
        let request = |model: &str| {
            let (project, server) = (project(), Server::start([stream(&Message::text("A dot."))]));
            let command = fusee(&project).args(["run", "what is @dot.gif?", "-m", model, "--api", api]);
            let done = with_keys(command.args(["--base-url", &server.base_url()])).run().exits(0);
            (server.requests()[0].arrived.body_text().matches(ENCODED).count(), done.stderr)
        };
        assert_eq!(request(model).0, 1, "{api}");
        if !blind.is_empty() {
            let (images, stderr) = request(blind);
            assert_eq!(images, 0, "{api}");
            assert!(stderr.contains("images not attached: this model does not accept images"), "{stderr}");
        }
    }
}
