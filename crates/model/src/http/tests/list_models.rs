//! Model lists of each kind of server.

use super::server::{Server, response};
use super::settings;
use crate::{ModelError, Models, ServedModel};
use std::time::SystemTime;

async fn list(answers: &[(&str, &str)]) -> (Result<Vec<ServedModel>, ModelError>, Vec<String>) {
    let answers = answers.iter().map(|(status, body)| response(status, "", body)).collect();
    let server = Server::start(answers).await;
    let listed = Models::new(|| SystemTime::UNIX_EPOCH).list("any", &settings(&server)).await;
    let asked = server
        .requests()
        .iter()
        .map(|request| request.split(" HTTP").next().unwrap_or_default().to_owned())
        .collect();
    (listed, asked)
}

fn listed(id: &str, size_bytes: Option<u64>, context_tokens: Option<u64>) -> ServedModel {
    ServedModel { id: id.into(), size_bytes, context_tokens }
}

#[tokio::test]
async fn llama_cpp_tells_all_at_once() {
    let models =
        "{\"data\":[{\"id\":\"m.gguf\",\"meta\":{\"n_ctx\":4096,\"n_ctx_train\":8192,\"size\":96576768}}]}";
    let (found, asked) = list(&[("200 OK", models)]).await;
    assert_eq!(found.unwrap(), [listed("m.gguf", Some(96_576_768), Some(4096))]);
    assert_eq!(asked, ["GET /v1/models"]);
}

#[tokio::test]
async fn ollama_is_asked_for_its_tags_and_for_each_model() {
    let models =
        "{\"object\":\"list\",\"data\":[{\"id\":\"a:1b\",\"owned_by\":\"library\"},{\"id\":\"b:2b\"}]}";
    let tags = "{\"models\":[{\"name\":\"a:1b\",\"model\":\"a:1b\",\"size\":986061892},{\"name\":\"b:2b\",\"size\":5}]}";
    let set = "{\"parameters\":\"stop x\\nnum_ctx                        16384\",\"model_info\":{\"q.context_length\":32768}}";
    let trained = "{\"model_info\":{\"general.architecture\":\"q\",\"q.context_length\":32768}}";
    let (found, asked) =
        list(&[("200 OK", models), ("200 OK", tags), ("200 OK", set), ("200 OK", trained)]).await;
    assert_eq!(
        found.unwrap(),
        [listed("a:1b", Some(986_061_892), Some(16384)), listed("b:2b", Some(5), Some(32768))]
    );
    assert_eq!(asked, ["GET /v1/models", "GET /api/tags", "POST /api/show", "POST /api/show"]);
}

#[tokio::test]
async fn lm_studio_tells_in_a_list_of_its_own() {
    let models = "{\"data\":[{\"id\":\"a\",\"object\":\"model\"}]}";
    let own = "{\"data\":[{\"id\":\"a\",\"max_context_length\":131072,\"loaded_context_length\":8192}]}";
    let (found, asked) = list(&[("200 OK", models), ("404 Not Found", ""), ("200 OK", own)]).await;
    assert_eq!(found.unwrap(), [listed("a", None, Some(8192))]);
    assert_eq!(asked, ["GET /v1/models", "GET /api/tags", "GET /api/v0/models"]);
}

#[tokio::test]
async fn a_server_without_a_list_says_so() {
    let (found, _) = list(&[("401 Unauthorized", "{}")]).await;
    assert!(found.unwrap_err().message.ends_with("does not list its models (HTTP 401)"));
    let (found, _) = list(&[("200 OK", "{\"x\":1}")]).await;
    assert!(found.unwrap_err().message.ends_with("did not return a list of models"));
}

#[tokio::test]
async fn the_context_of_one_model_of_ollama_is_asked_for() {
    let answers = [
        ("200 OK", "{\"data\":[{\"id\":\"test-model\",\"owned_by\":\"library\"}]}"),
        ("200 OK", "{\"model_info\":{\"q.context_length\":32768}}"),
    ];
    let answers = answers.iter().map(|(status, body)| response(status, "", body)).collect();
    let server = Server::start(answers).await;
    assert_eq!(super::open(&settings(&server)).context_tokens().await, Some(32768));
    assert!(server.requests()[1].ends_with("{\"model\":\"test-model\"}"), "{}", server.requests()[1]);
}
