//! Discovery on the machine: servers of each kind at the addresses in the environment, their models in `fusee
//! models`, one round trip to each model in `fusee doctor`, and user-defined prices.

use std::fs;

use fusee_testkit::project::{Command, Project};
use fusee_testkit::server::{Message, ReceivedRequest, Reply, Server};
use serde_json::{Value, json};

use crate::support::{fusee, run_on};

/// A server of each kind, with two of the four call formats.
struct Machine {
    ollama: Server,
    llama_cpp: Server,
    lm_studio: Server,
    vllm: Server,
}

fn list(entries: &Value) -> Reply {
    Reply::json(200, &json!({ "object": "list", "data": entries }))
}

fn called() -> Reply {
    Message::call("ping", json!({"word": "pong"})).stream()
}

fn serving(answer: fn(&str, &ReceivedRequest) -> Option<Reply>) -> Server {
    Server::with_metadata(move |arrived| {
        let path = arrived.path.split('?').next().unwrap_or_default();
        answer(path, arrived).unwrap_or_else(|| Reply::error(404, "no such thing"))
    })
}

impl Machine {
    fn start() -> Machine {
        Machine {
            ollama: serving(|path, arrived| match path {
                "/v1/models" => Some(list(&json!([
                    {"id": "qwen2.5-coder:7b", "object": "model", "owned_by": "library"},
                    {"id": "tiny:1b", "object": "model", "owned_by": "library"},
                    {"id": "broken:1b", "object": "model", "owned_by": "library"},
                ]))),
                "/api/tags" => Some(Reply::json(
                    200,
                    &json!({"models": [
                        {"name": "qwen2.5-coder:7b", "model": "qwen2.5-coder:7b", "size": 4_700_000_000_u64},
                        {"name": "tiny:1b", "model": "tiny:1b", "size": 900_000_000},
                    ]}),
                )),
                "/api/show" => {
                    Some(Reply::json(200, &json!({"model_info": {"qwen2.context_length": 32768}})))
                }
                "/v1/chat/completions" => Some(match arrived.json()["model"].as_str() {
                    Some("qwen2.5-coder:7b") => {
                        let text = "<tool_call>\n{\"name\": \"ping\", \"arguments\": {\"word\": \"pong\"}}\n</tool_call>";
                        Message::text(text).stream()
                    }
                    Some("tiny:1b") => Message::text("Pong!").stream(),
                    _ => Reply::error(500, "model runner has unexpectedly stopped"),
                }),
                _ => None,
            }),
            llama_cpp: serving(|path, _| match path {
                "/v1/models" => Some(list(&json!([
                    {"id": "smollm2.gguf", "owned_by": "llamacpp", "meta": {"n_ctx_train": 8192, "n_ctx": 4096, "size": 100_000_000}},
                ]))),
                "/v1/chat/completions" => Some(called()),
                _ => None,
            }),
            lm_studio: serving(|path, _| match path {
                "/v1/models" => Some(list(&json!([{"id": "gemma", "object": "model"}]))),
                "/api/v0/models" => Some(list(&json!([{"id": "gemma", "loaded_context_length": 16384}]))),
                "/v1/chat/completions" => Some(called()),
                _ => None,
            }),
            vllm: serving(|path, _| match path {
                "/v1/models" => {
                    Some(list(&json!([{"id": "org/model", "owned_by": "vllm", "max_model_len": 131_072}])))
                }
                "/v1/chat/completions" => Some(called()),
                _ => None,
            }),
        }
    }

    fn around<'p>(&self, command: Command<'p>) -> Command<'p> {
        command
            // The variable of Ollama's own client.
            .env("OLLAMA_HOST", format!("127.0.0.1:{}", self.ollama.port()))
            .env("LLAMA_CPP_BASE_URL", self.llama_cpp.base_url())
            .env("LMSTUDIO_BASE_URL", self.lm_studio.base_url())
            .env("VLLM_BASE_URL", self.vllm.base_url())
    }
}

#[test]
fn a_test_project_finds_no_server_of_the_machine() {
    let project = Project::new();
    let examined = fusee(&project).args(["doctor", "--quick", "--json"]).run();
    let report: Value = serde_json::from_str(&examined.stdout).unwrap();
    let models = report["models"].as_array().unwrap();
    let environment = project.environment();
    let address = environment.iter().find(|(name, _)| *name == "VLLM_BASE_URL").unwrap().1.to_str().unwrap();
    let nowhere = address.trim_start_matches("http://").trim_end_matches("/v1");
    for model in models.iter().filter(|model| model["state"] != "ready") {
        let detail = model["detail"].as_str().unwrap();
        let is_hosted = detail.ends_with("_API_KEY is not set");
        let is_nowhere = detail == format!("no server at {nowhere}");
        let is_left_out = model["name"] == "local";
        assert!(is_hosted || is_nowhere || is_left_out, "looks for servers elsewhere: {model}");
    }
    let ready: Vec<&str> = models
        .iter()
        .filter(|model| model["state"] == "ready")
        .map(|model| model["name"].as_str().unwrap())
        .filter(|name| *name != "local")
        .collect();
    assert_eq!(ready, ["script", "replay"]);
    assert_eq!(fusee(&project).args(["models", "--json"]).run().exits(0).stdout.trim(), "[]");
}

#[test]
fn models_of_every_kind_of_server_are_listed_with_what_is_known_of_them() {
    let (project, machine) = (Project::new(), Machine::start());
    let listed = machine.around(fusee(&project).args(["models", "--json"])).run().exits(0);
    let free = json!({"input": 0.0, "output": 0.0});
    assert_eq!(
        serde_json::from_str::<Value>(&listed.stdout).unwrap(),
        json!([
            {"name": "ollama:qwen2.5-coder:7b", "size_bytes": 4_700_000_000_u64, "context_tokens": 32768, "price": free, "source": "ollama"},
            {"name": "ollama:tiny:1b", "size_bytes": 900_000_000, "context_tokens": 32768, "price": free, "source": "ollama"},
            {"name": "ollama:broken:1b", "context_tokens": 32768, "price": free, "source": "ollama"},
            {"name": "llama.cpp:smollm2.gguf", "size_bytes": 100_000_000, "context_tokens": 4096, "price": free, "source": "llama.cpp"},
            {"name": "lmstudio:gemma", "context_tokens": 16384, "price": free, "source": "lmstudio"},
            {"name": "vllm:org/model", "context_tokens": 131_072, "price": free, "source": "vllm"},
        ])
    );
    let table = machine.around(fusee(&project).args(["models", "coder"])).run().exits(0).stdout;
    assert_eq!(table, "ollama:qwen2.5-coder:7b    4.7 GB   32768 tok  free\n");
    let asked = [&machine.ollama, &machine.llama_cpp, &machine.lm_studio, &machine.vllm];
    assert!(asked.iter().all(|server| server.requests().is_empty()), "no model is asked anything");
}

#[test]
fn the_doctor_makes_one_round_trip_to_each_model() {
    let (project, machine) = (Project::new(), Machine::start());
    let examined = machine.around(fusee(&project).args(["doctor", "--json"])).run();
    let report: Value = serde_json::from_str(&examined.stdout).unwrap();
    let of = |name: &str| {
        let found = report["models"].as_array().unwrap().iter().find(|finding| finding["name"] == name);
        let found = found.unwrap_or_else(|| panic!("{name} in {report:#}"));
        (found["state"].as_str().unwrap().to_owned(), found["detail"].as_str().unwrap().to_owned())
    };
    let place =
        format!("3 models at 127.0.0.1:{}: qwen2.5-coder:7b, tiny:1b, broken:1b", machine.ollama.port());
    assert_eq!(of("ollama"), ("ready".to_owned(), place));
    for (name, state, detail) in [
        ("ollama:qwen2.5-coder:7b", "ready", "writes tool calls as text, which is supported"),
        ("ollama:tiny:1b", "ready", "made no tool call; try tool_format = \"schema\""),
        ("ollama:broken:1b", "broken", "model runner has unexpectedly stopped"),
        ("llama.cpp:smollm2.gguf", "ready", "makes tool calls"),
        ("lmstudio:gemma", "ready", "makes tool calls"),
        ("vllm:org/model", "ready", "makes tool calls"),
    ] {
        let (found, said) = of(name);
        assert_eq!(found, state, "{name}: {said}");
        assert!(said.contains(detail), "{name}: {said}");
    }
    let trips = |server: &Server| server.requests().len();
    let asked = [&machine.ollama, &machine.llama_cpp, &machine.lm_studio, &machine.vllm].map(trips);
    assert_eq!(asked, [3, 1, 1, 1]);
    let quick = Machine::start();
    quick.around(fusee(&project).args(["doctor", "--quick"])).run();
    assert!(quick.ollama.requests().is_empty());
}

#[test]
fn the_only_model_of_a_server_is_taken_wherever_it_listens() {
    let (project, machine) = (Project::new(), Machine::start());
    let run = fusee(&project).args(["run", "Ping.", "--max-turns", "1"]);
    let outcome = run.env("LMSTUDIO_BASE_URL", machine.lm_studio.base_url()).run();
    assert!(outcome.stderr.contains("using lmstudio:gemma"), "{}", outcome.stderr);
    assert_eq!(machine.lm_studio.requests().len(), 1);
}

#[test]
fn prices_of_ones_own_go_before_ours_and_decide_about_a_budget() {
    let project = Project::new();
    let folder = project.home().join(".config/fusee");
    fs::create_dir_all(&folder).unwrap();
    let prices = |input: u32| {
        let text = format!(
            "[[price]]\nprovider = [\"openai\"]\nmodel = [\"scripted*\"]\ninput = {input}\noutput = 0\n"
        );
        fs::write(folder.join("prices.toml"), text).unwrap();
    };
    let cost = |code: i32| {
        let server = Server::start([Message::text("Done.").usage(1_000_000, 10)]);
        let outcome = run_on(&project, &server).args(["--budget-usd", "3"]).run().exits(code);
        let sent = server.requests().len();
        (outcome.events().last().unwrap()["cost_usd"].clone(), sent)
    };
    prices(2);
    assert_eq!(cost(0), (json!(2.0), 1));
    // A thousand dollars per token: the first request alone exceeds the budget and is not sent.
    prices(1_000_000_000);
    assert_eq!(cost(3), (json!(0.0), 0));
    fs::write(folder.join("prices.toml"), "[[price]]\nmodel = [\"x\"]\ninptu = 1\noutput = 1\n").unwrap();
    let server = Server::start([Message::text("Done.")]);
    let wrong = run_on(&project, &server).run().exits(2);
    assert!(wrong.stderr.contains("prices.toml:1:1") && wrong.stderr.contains("inptu"), "{}", wrong.stderr);
}

#[test]
fn the_verbose_version_has_what_a_bug_report_needs() {
    let project = Project::new();
    let told = fusee(&project).args(["--version", "--verbose"]).run().exits(0).stdout;
    let names: Vec<&str> = told.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["fusee", "commit", "target", "features", "sandbox"], "{told}");
    assert!(told.starts_with(&format!("fusee {}\n", env!("CARGO_PKG_VERSION"))), "{told}");
    let short = fusee(&project).args(["--version"]).run().exits(0).stdout;
    assert_eq!(short.lines().collect::<Vec<_>>(), told.lines().take(1).collect::<Vec<_>>());
}
