//! Search services: SearXNG, Brave and Tavily. Each is one request; its answer is reduced to title, address and excerpt.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, Url};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::WebError;

/// Maximum bytes of an answer.
const MAX_ANSWER: usize = 4 << 20;
/// Time limit of a search.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// Bytes of an error's body that are shown.
const SHOWN: usize = 200;
/// Maximum characters of a title or an excerpt.
const MAX_TEXT: usize = 600;

/// The API that a search service speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchService {
    /// A SearXNG instance whose `search.formats` include `json`.
    Searxng,
    /// Brave Search.
    Brave,
    /// The search API of Tavily, made for models.
    Tavily,
}

impl SearchService {
    /// Its public address; SearXNG has none.
    #[must_use]
    pub fn default_url(self) -> Option<&'static str> {
        match self {
            Self::Searxng => None,
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Tavily => Some("https://api.tavily.com"),
        }
    }

    /// The environment variable that usually holds its key; SearXNG needs none.
    #[must_use]
    pub fn default_key_variable(self) -> Option<&'static str> {
        match self {
            Self::Searxng => None,
            Self::Brave => Some("BRAVE_API_KEY"),
            Self::Tavily => Some("TAVILY_API_KEY"),
        }
    }
}

/// The configured search service. Its key is not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchSettings {
    /// What it speaks.
    pub service: SearchService,
    /// Its base address.
    pub url: String,
    /// Environment variable that holds its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_variable: Option<String>,
}

/// One result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// Title of the page.
    pub title: String,
    /// Address of the page.
    pub url: String,
    /// Excerpt of the page, or its description.
    pub text: String,
}

impl SearchSettings {
    /// The address that requests go to.
    pub(crate) fn endpoint(&self) -> Result<Url, WebError> {
        let path = match self.service {
            SearchService::Searxng | SearchService::Tavily => "search",
            SearchService::Brave => "res/v1/web/search",
        };
        let url = format!("{}/{path}", self.url.trim_end_matches('/'));
        Url::parse(&url).map_err(|error| WebError(format!("web_search.url: {error}")))
    }

    /// Searches; returns at most `count` results.
    pub(crate) async fn search(
        &self,
        client: &Client,
        key: Option<&str>,
        query: &str,
        count: usize,
    ) -> Result<Vec<SearchHit>, WebError> {
        let request = self.request(client, key, query, count)?.timeout(TIME_LIMIT);
        let failed = |error: &dyn std::fmt::Display| WebError(format!("the search failed: {error}"));
        let response = request.send().await.map_err(|error| failed(&error.without_url()))?;
        let status = response.status();
        let read = super::read(response, MAX_ANSWER).await;
        let (body, is_cut) = read.map_err(|error| failed(&error.without_url()))?;
        if !status.is_success() {
            let body = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).into_owned();
            return Err(failed(&format!("the service answered {status}: {}", body.trim())));
        }
        if is_cut {
            return Err(failed(&format!("the answer has more than {MAX_ANSWER} bytes")));
        }
        let answer: Value = serde_json::from_slice(&body).map_err(|error| failed(&error))?;
        Ok(self.hits(&answer, count))
    }

    fn request(
        &self,
        client: &Client,
        key: Option<&str>,
        query: &str,
        count: usize,
    ) -> Result<RequestBuilder, WebError> {
        let mut url = self.endpoint()?;
        let number = count.to_string();
        let key = key.unwrap_or_default();
        Ok(match self.service {
            SearchService::Searxng => {
                url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
                client.get(url)
            }
            SearchService::Brave => {
                url.query_pairs_mut().append_pair("q", query).append_pair("count", &number);
                client.get(url).header("accept", "application/json").header("x-subscription-token", key)
            }
            SearchService::Tavily => {
                let body = json!({ "query": query, "max_results": count }).to_string();
                client.post(url).header("content-type", "application/json").bearer_auth(key).body(body)
            }
        })
    }

    fn hits(&self, answer: &Value, count: usize) -> Vec<SearchHit> {
        let (list, excerpt) = match self.service {
            SearchService::Searxng | SearchService::Tavily => (&answer["results"], "content"),
            SearchService::Brave => (&answer["web"]["results"], "description"),
        };
        let text = |value: &Value| -> String {
            let words = value.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
            words.chars().take(MAX_TEXT).collect()
        };
        let hit = |entry: &Value| SearchHit {
            title: text(&entry["title"]),
            url: text(&entry["url"]),
            text: text(&entry[excerpt]),
        };
        let hits = list.as_array().into_iter().flatten().map(hit);
        hits.filter(|hit| !hit.url.is_empty()).take(count).collect()
    }
}
