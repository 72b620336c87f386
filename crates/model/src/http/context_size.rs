//! Queries what a server says about itself: the slots it has, and a model's parameters and context size: `max_model_len` and similar fields in the model list,
//! llama.cpp's `/props`, which knows the size the server was started with, and Ollama's `/api/show`.

use std::time::Duration;

use reqwest::Response;
use serde_json::Value;
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::list_models;

/// Timeout of the query; it is not repeated.
const TIME: Duration = Duration::from_secs(3);
/// Requests that are sent to vLLM at once: it does not say what fits.
const VLLM_SLOTS: u32 = 4;
/// Maximum size of a response; the longest known list (OpenRouter's) is a third of this.
const MAX_ANSWER: usize = 4 << 20;

/// Context size of the model `id`, if its server reports it.
pub(super) async fn ask(endpoint: &Endpoint, id: &str) -> Option<u64> {
    timeout(TIME, async {
        let list = fetch(endpoint, "models").await;
        let entry = list.as_ref().and_then(|list| entry(list, id));
        if let Some(stated) = entry.and_then(reported_context_size) {
            return Some(stated);
        }
        // Only llama.cpp has `meta`, and there the context the model was trained with is not the server's.
        let trained = entry.and_then(|entry| size(&entry["meta"]["n_ctx_train"]));
        if list.is_some() && trained.is_none() {
            // Ollama lists only names, but reports the size of a single model.
            let tagged = |entry: &Value| entry["owned_by"] == "library" || id.contains(':');
            let is_ollama = endpoint.is_plain() && entry.is_some_and(tagged);
            return if is_ollama { list_models::ollama_context_size(endpoint, id).await } else { None };
        }
        let props = fetch(endpoint, "/props").await;
        props.as_ref().and_then(running).or(trained)
    })
    .await
    .ok()
    .flatten()
}

/// Billions of parameters of the model `id`: llama.cpp's server counts them.
pub(super) async fn parameters(endpoint: &Endpoint, id: &str) -> Option<f64> {
    if !endpoint.is_plain() {
        return None;
    }
    let list = timeout(TIME, fetch(endpoint, "models")).await.ok().flatten()?;
    entry(&list, id)?["meta"]["n_params"].as_f64().filter(|count| *count > 0.0).map(|count| count / 1e9)
}

/// Requests that the server works on at once: llama.cpp's slots. vLLM batches as many as fit.
pub(super) async fn slots(endpoint: &Endpoint) -> Option<u32> {
    if !endpoint.is_plain() {
        return None;
    }
    timeout(TIME, async {
        if let Some(props) = fetch(endpoint, "/props").await {
            return props["total_slots"].as_u64().and_then(|slots| u32::try_from(slots).ok());
        }
        let list = fetch(endpoint, "models").await?;
        (list["data"][0]["owned_by"] == "vllm").then_some(VLLM_SLOTS)
    })
    .await
    .ok()
    .flatten()
}

fn entry<'a>(list: &'a Value, id: &str) -> Option<&'a Value> {
    let entries = list["data"].as_array().or_else(|| list.as_array())?;
    let named = entries.iter().find(|entry| entry["id"] == id);
    // A server with a single model answers to any name.
    named.or(if let [only] = entries.as_slice() { Some(only) } else { None })
}

/// The fields in which servers report it: vLLM, OpenRouter and Together, Groq, Mistral, LM Studio.
pub(super) fn reported_context_size(entry: &Value) -> Option<u64> {
    ["max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length"]
        .into_iter()
        .find_map(|key| size(&entry[key]))
        .or_else(|| size(&entry["meta"]["n_ctx"]))
}

fn running(props: &Value) -> Option<u64> {
    size(&props["default_generation_settings"]["n_ctx"]).or_else(|| size(&props["n_ctx"]))
}

pub(super) fn size(value: &Value) -> Option<u64> {
    value.as_u64().filter(|tokens| *tokens > 0)
}

pub(super) async fn fetch(endpoint: &Endpoint, path: &str) -> Option<Value> {
    let response = endpoint.ask(path).send().await.ok()?;
    if response.status().is_success() { read(response).await } else { None }
}

/// Parses a response as JSON; `None` if it is not JSON or too long.
pub(super) async fn read(mut response: Response) -> Option<Value> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.ok()? {
        if body.len() + bytes.len() > MAX_ANSWER {
            return None;
        }
        body.extend_from_slice(&bytes);
    }
    serde_json::from_slice(&body).ok()
}
