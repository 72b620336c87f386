//! The first request of a plain `fusee run`.

use fusee::engine::model::tokens::exact_count;
use fusee_testkit::project::Project;
use fusee_testkit::server::{Message, Script, Server};
use serde_json::Value;

use crate::support::run_on;

fn first_request(project: &Project) -> Value {
    let server = Server::start([Message::text("Done.")].into_iter().collect::<Script>());
    run_on(project, &server).run().exits(0);
    server.requests()[0].arrived.json()
}

fn tokens(text: &str) -> usize {
    exact_count(text).expect("the vocabulary is part of the build")
}

#[test]
fn the_prompt_and_its_tools_are_shorter_than_1200_tokens() {
    let body = first_request(&Project::new());
    let system = tokens(body["messages"][0]["content"].as_str().unwrap());
    let tools = tokens(&body["tools"].to_string());
    let each: Vec<String> = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| format!("{} {}", tool["function"]["name"], tokens(&tool.to_string())))
        .collect();
    assert!(system + tools < 1_200, "prompt {system} and tools {tools}: {each:#?}");
}

/// A small model takes an example path for a real one: with `src/…` in a description it edited
/// `src/solution.py` in nine of ten projects that had no such file.
#[test]
fn no_example_in_a_tool_names_a_directory() {
    let body = first_request(&Project::new());
    let tools = body["tools"].as_array().unwrap();
    let found: Vec<&Value> = tools.iter().filter(|tool| tool.to_string().contains("src/")).collect();
    assert!(tools.len() > 10 && found.is_empty(), "{found:#?}");
}
