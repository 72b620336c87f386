//! Lists the models of a server with their size and context, as far as it reports them. `context_size` queries the
//! context of a single model.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::context_size::{self, fetch, size};
use super::endpoint::Endpoint;
use crate::{ErrorKind, ModelError};

/// Timeout for listing the models of a server.
const TIME: Duration = Duration::from_secs(5);
/// Maximum number of models of a server that are queried individually.
const MAX_SHOWN: usize = 50;

/// A model offered by a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedModel {
    /// Id to request it by.
    pub id: String,
    /// Size of its weights in bytes, if reported.
    pub size_bytes: Option<u64>,
    /// Context size in tokens, if reported.
    pub context_tokens: Option<u64>,
}

/// All models of a server, in the server's order.
pub(crate) async fn list(endpoint: &Endpoint) -> Result<Vec<ServedModel>, ModelError> {
    timeout(TIME, gather(endpoint)).await.unwrap_or_else(|_| {
        let message = format!("{} did not list its models within {} s", endpoint.shown, TIME.as_secs());
        Err(ModelError::new(ErrorKind::Timeout, message))
    })
}

async fn gather(endpoint: &Endpoint) -> Result<Vec<ServedModel>, ModelError> {
    let response = endpoint.ask("models").send().await.map_err(|error| endpoint.unsent(&error))?;
    if !response.status().is_success() {
        let message =
            format!("{} does not list its models (HTTP {})", endpoint.shown, response.status().as_u16());
        return Err(ModelError {
            status: Some(response.status().as_u16()),
            ..ModelError::new(ErrorKind::Invalid, message)
        });
    }
    let list = context_size::read(response).await.unwrap_or_default();
    let Some(entries) = list["data"].as_array().or_else(|| list.as_array()) else {
        let message = format!("{} did not return a list of models", endpoint.shown);
        return Err(ModelError::new(ErrorKind::Protocol, message));
    };
    let mut listed: Vec<ServedModel> = entries
        .iter()
        .filter_map(|entry| {
            Some(ServedModel {
                id: entry["id"].as_str()?.to_owned(),
                size_bytes: size(&entry["meta"]["size"]),
                context_tokens: context_size::reported_context_size(entry),
            })
        })
        .collect();
    // Only self-hosted servers report more, each at its own path.
    if endpoint.is_plain()
        && listed.iter().any(|model| model.size_bytes.is_none() || model.context_tokens.is_none())
    {
        complete(endpoint, &mut listed).await;
    }
    Ok(listed)
}

/// Adds sizes and contexts from Ollama's tags or LM Studio's model list.
async fn complete(endpoint: &Endpoint, listed: &mut [ServedModel]) {
    if let Some(tags) = fetch(endpoint, "/api/tags").await {
        for tag in tags["models"].as_array().into_iter().flatten() {
            let named = |model: &&mut ServedModel| tag["model"] == *model.id || tag["name"] == *model.id;
            if let Some(model) = listed.iter_mut().find(named) {
                model.size_bytes = model.size_bytes.or(size(&tag["size"]));
            }
        }
        for model in listed.iter_mut().filter(|model| model.context_tokens.is_none()).take(MAX_SHOWN) {
            model.context_tokens = ollama_context_size(endpoint, &model.id).await;
        }
        return;
    }
    if let Some(list) = fetch(endpoint, "/api/v0/models").await {
        for entry in list["data"].as_array().into_iter().flatten() {
            if let Some(model) = listed.iter_mut().find(|model| entry["id"] == *model.id) {
                model.context_tokens = model.context_tokens.or(context_size::reported_context_size(entry));
            }
        }
    }
}

/// Context size from Ollama's `/api/show`: the configured one, otherwise the one the model was trained with.
pub(super) async fn ollama_context_size(endpoint: &Endpoint, id: &str) -> Option<u64> {
    let body = json!({ "model": id }).to_string();
    let response = endpoint.post("/api/show").body(body).send().await.ok()?;
    let shown: Value =
        if response.status().is_success() { context_size::read(response).await? } else { return None };
    let set = shown["parameters"].as_str().into_iter().flat_map(str::lines).find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == "num_ctx").then(|| words.next()?.parse().ok()).flatten()
    });
    let trained = shown["model_info"].as_object().into_iter().flatten();
    set.or_else(|| {
        trained.filter(|(key, _)| key.ends_with(".context_length")).find_map(|(_, value)| size(value))
    })
}
