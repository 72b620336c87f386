//! What slash commands mean.

use fusee::lang::{Param, ParamType};
use fusee::launch::NamedTaskKind;
use serde_json::json;

use super::*;

fn task() -> NamedTask {
    let param = |name: &str, kind, required| Param {
        name: name.to_owned(),
        kind,
        required,
        default: None,
        doc: None,
        aliases: Vec::new(),
    };
    NamedTask {
        name: "greet".to_owned(),
        kind: NamedTaskKind::Template,
        description: "Greet a person\nin words".to_owned(),
        inputs: vec![param("who", ParamType::String, true), param("times", ParamType::Number, false)],
        output_schema: None,
        text: String::new(),
    }
}

fn started(text: &str) -> LaunchWork {
    match meaning(text, &[task()], &[]) {
        Meaning::Run(work) => work,
        other => panic!("{text} does not start a run: {other:?}"),
    }
}

fn greet(inputs: Value) -> LaunchWork {
    let Value::Object(inputs) = inputs else { panic!("inputs are an object") };
    LaunchWork::Named { name: "greet".to_owned(), inputs }
}

#[test]
fn tasks_are_commands_with_inputs_that_may_contain_spaces() {
    assert_eq!(started("/greet who=Ann B times=3"), greet(json!({"who": "Ann B", "times": 3})));
    assert_eq!(started("/greet Ann B"), greet(json!({"who": "Ann B"})));
    assert_eq!(started("/task greet who=Ann"), greet(json!({"who": "Ann"})));
    assert_eq!(started("/task (+ 1 2)"), LaunchWork::Workflow("(+ 1 2)".to_owned()));
    assert_eq!(started("(+ 1 2)"), LaunchWork::Workflow("(+ 1 2)".to_owned()));
}

#[test]
fn words_and_paths_are_requests() {
    for text in ["Fix it.", "/etc/hosts is wrong", "/ is the root", "a /greet inside"] {
        assert_eq!(started(text), LaunchWork::Request(text.to_owned()));
    }
}

#[test]
fn unknown_commands_and_wrong_inputs_are_answered() {
    let reply = |text: &str| match meaning(text, &[task()], &[]) {
        Meaning::Reply(text) => text,
        other => panic!("{text} is not answered: {other:?}"),
    };
    assert_eq!(
        reply("/gret"),
        "Unknown command or task `gret`; did you mean `greet`?. `/help` lists the commands."
    );
    assert_eq!(
        reply("/greet who=Ann times=many"),
        "/greet: `many` is not of type number. It takes: who=… [times=…]"
    );
    assert!(reply("/help").ends_with("- `/greet`: Greet a person"));
}
