//! Externally visible JSON shapes, byte for byte.

use std::sync::Arc;

use fusee_model::Message;
use serde_json::{Map, Value, json};

use super::handler::Handler;
use super::*;
use crate::agent::test_support;
use crate::prompt::EnvironmentSnapshot;
use crate::template::Template;

#[test]
fn a_failed_result_is_the_object_of_the_format() {
    let error = TaskError::failure(Reason::OutputFormatFailure, "the answer is not an object").caused_by(
        ErrorCause::Mismatch(Mismatch {
            error_type: "type_mismatch".to_owned(),
            message: "expected object, found array".to_owned(),
            location: String::new(),
        }),
    );
    let result = error.to_result("[1]");
    let value = serde_json::to_value(&result).unwrap();
    assert_eq!(
        value,
        json!({
            "status": "FAILED",
            "content": "[1]",
            "notes": {
                "error": {
                    "type": "TASK_FAILURE",
                    "reason": "output_format_failure",
                    "message": "the answer is not an object",
                    "cause": {
                        "error_type": "type_mismatch",
                        "message": "expected object, found array",
                        "location": ""
                    }
                },
                "recovery": error.recovery(),
            }
        })
    );
    let back: TaskResult = serde_json::from_value(value).unwrap();
    assert_eq!((TaskError::of_result(&back), back), (Some(error), result));
}

#[test]
fn a_null_that_was_parsed_is_kept() {
    let result = TaskResult { parsed_content: Some(Value::Null), ..TaskResult::complete("null") };
    let text = serde_json::to_string(&result).unwrap();
    assert_eq!(text, r#"{"status":"COMPLETE","content":"null","parsedContent":null,"notes":{}}"#);
    assert_eq!(serde_json::from_str::<TaskResult>(&text).unwrap(), result);
}

#[test]
fn the_failure_of_a_subtask_keeps_the_inner_one_whole() {
    let metrics =
        ResourceMetrics { turns: 3, input_tokens: 10, output_tokens: 2, ..ResourceMetrics::default() };
    let inner = TaskError {
        kind: ErrorType::ResourceExhaustion,
        ..TaskError::failure(Reason::Turns, "too many turns").measured(metrics)
    };
    let outer = TaskError::subtask(inner, "review");
    assert_eq!(
        serde_json::to_value(&outer).unwrap(),
        json!({
            "type": "TASK_FAILURE", "reason": "subtask_failure",
            "message": "the subtask `review` failed: too many turns",
            "metrics": {"turns": 3, "input_tokens": 10, "output_tokens": 2},
            "cause": {
                "type": "RESOURCE_EXHAUSTION", "reason": "turns", "message": "too many turns",
                "metrics": {"turns": 3, "input_tokens": 10, "output_tokens": 2},
            }
        })
    );
}

#[test]
fn every_reason_is_written_as_it_is_named() {
    for name in [
        "turns",
        "context",
        "output",
        "time",
        "cost",
        "context_retrieval_failure",
        "context_matching_failure",
        "context_parsing_failure",
        "xml_validation_failure",
        "output_format_failure",
        "execution_halted",
        "subtask_failure",
        "input_validation_failure",
        "template_not_found",
        "tool_execution_error",
        "llm_error",
        "configuration_error",
        "blocked",
        "unexpected_error",
    ] {
        assert_eq!(Reason::named(name).map(Reason::as_str), Some(name));
    }
}

#[test]
fn a_request_reads_what_a_model_would_write() {
    let request: SubtaskRequest = serde_json::from_value(json!({
        "name": "review", "inputs": {"path": "a.rs"}, "inherited_context": "The bug is in line 3.",
        "context_management": {"inherit_context": "subset"}
    }))
    .unwrap();
    let mut inputs = Map::new();
    inputs.insert("path".to_owned(), json!("a.rs"));
    let expected = SubtaskRequest {
        inherited_context: Some(InheritedContext::text("The bug is in line 3.")),
        context_management: Some(ContextOverrides {
            inherit_context: Some(InheritContext::Subset),
            ..ContextOverrides::default()
        }),
        ..SubtaskRequest::named("review", inputs)
    };
    assert_eq!(request, expected);
    let unknown = serde_json::from_value::<SubtaskRequest>(json!({"name": "x", "nmae": 1}));
    assert!(unknown.unwrap_err().to_string().contains("nmae"));
}

#[tokio::test]
async fn a_payload_has_its_five_parts() {
    let directory = tempfile::tempdir().unwrap();
    let session = test_support::session(directory.path(), &[]);
    let engine = test_support::new_run(directory.path()).await;
    let scope = TaskScope::main(0, fusee_model::CancellationToken::new(), Arc::default());
    let handler = Handler::new(session, &engine, &scope);
    let template = Template {
        name: "count".to_owned(),
        subtype: Some("writer".to_owned()),
        system: Some("You count.".to_owned()),
        ..Template::of_words("How many?".to_owned())
    };
    let files = vec![SourceFile { path: "a.txt".to_owned(), content: "1\tone".to_owned() }];
    let context = PreparedContext { files, listed: true, ..PreparedContext::default() };
    let composed = compose(&template, &context, &EnvironmentSnapshot::capture(directory.path(), 0)).unwrap();
    let payload = handler.construct_payload(&template, composed, context.clone());
    assert_eq!(payload.system_prompt.text(), "You count.");
    let request = Message::user("How many?\n\n## File a.txt\n\n1\tone");
    assert_eq!(payload.messages, [request]);
    assert_eq!(payload.context, context);
    let has = |name: &str| payload.tools.iter().any(|tool| tool == name);
    assert!(has("read_file") && has("spawn_subtask"), "{:?}", payload.tools);
    let facts = json!({ "template": "count", "subtype": "writer", "task": "main", "run": "test" });
    assert_eq!(Value::Object(payload.metadata), facts);
}
