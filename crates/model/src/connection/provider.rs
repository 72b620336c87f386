//! Known providers, by the prefix in `provider:model`. This is data; the caller determines the keys and
//! addresses a user actually has.

use std::ffi::OsString;

use crate::Wire;
use crate::connection::{ResolveError, first_text};

/// A known kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Provider {
    /// Prefix in `provider:model`.
    pub name: &'static str,
    /// Default base URL.
    pub base_url: &'static str,
    /// Default API format.
    pub wire: Wire,
    /// Environment variable that usually holds the key; `None` for self-hosted servers.
    pub key_variable: Option<&'static str>,
}

/// All known providers.
pub const PROVIDERS: &[Provider] = &[
    Provider { wire: Wire::Responses, ..hosted("openai", "https://api.openai.com/v1", "OPENAI_API_KEY") },
    Provider {
        wire: Wire::Anthropic,
        ..hosted("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY")
    },
    hosted("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    hosted("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    hosted("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    hosted("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    hosted("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    self_hosted("ollama", "http://127.0.0.1:11434/v1"),
    self_hosted("llama.cpp", "http://127.0.0.1:8080/v1"),
    self_hosted("lmstudio", "http://127.0.0.1:1234/v1"),
    self_hosted("vllm", "http://127.0.0.1:8000/v1"),
];

impl Provider {
    /// Looks up the provider called `name`.
    pub fn named(name: &str) -> Option<&'static Provider> {
        PROVIDERS.iter().find(|provider| provider.name == name)
    }

    /// Environment variable that overrides its base URL: `OPENAI_BASE_URL`, `LLAMA_CPP_BASE_URL`.
    pub fn url_variable(&self) -> String {
        match self.key_variable {
            Some(key) => key.replace("_API_KEY", "_BASE_URL"),
            None => format!("{}_BASE_URL", self.name.to_uppercase().replace('.', "_")),
        }
    }

    /// The base URL set by a variable, if any; `secrets` looks variables up.
    pub fn configured_url(
        &self,
        secrets: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Option<String>, ResolveError> {
        let own = self.url_variable();
        let (variable, text) = match first_text(&[&own], secrets) {
            Some(text) => (own, text),
            None if self.name == "ollama" => match first_text(&[OLLAMA_HOST], secrets) {
                Some(host) => (OLLAMA_HOST.to_owned(), of_ollama_host(&host)),
                None => return Ok(None),
            },
            None => return Ok(None),
        };
        check_url(&text).map(Some).map_err(|problem| ResolveError::Url { variable, problem })
    }
}

/// Why a base URL is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Not an http or https URL with a host.
    #[error("expected a URL that begins with http:// or https://, found {0:?}")]
    NotHttp(String),
    /// It contains credentials, and base URLs are displayed and journaled.
    #[error("the URL contains a user name or password, which would be stored in the journal")]
    Credentials,
}

/// Checks a base URL and removes trailing slashes.
pub fn check_url(text: &str) -> Result<String, UrlError> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    if authority.contains('@') {
        return Err(UrlError::Credentials);
    }
    if authority.is_empty() {
        return Err(UrlError::NotHttp(text.to_owned()));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// The variable that tells Ollama where to listen, and its own client where to connect.
const OLLAMA_HOST: &str = "OLLAMA_HOST";

/// The base URL for an `OLLAMA_HOST` value: a host, a port, both, or a URL without the version path.
fn of_ollama_host(text: &str) -> String {
    let (scheme, rest) = text.trim().split_once("://").unwrap_or(("http", text.trim()));
    let place = rest.split('/').next().unwrap_or_default();
    let (host, port) = match place.rsplit_once(':').filter(|_| !place.ends_with(']')) {
        Some((host, port)) => (host, port),
        None if scheme == "https" => (place, "443"),
        None => (place, "11434"),
    };
    // A server that listens on all interfaces is reached on the loopback interface.
    let host = if matches!(host, "" | "0.0.0.0" | "[::]") { "127.0.0.1" } else { host };
    format!("{scheme}://{host}:{port}/v1")
}

const fn hosted(name: &'static str, base_url: &'static str, key_variable: &'static str) -> Provider {
    Provider { name, base_url, wire: Wire::Chat, key_variable: Some(key_variable) }
}

const fn self_hosted(name: &'static str, base_url: &'static str) -> Provider {
    Provider { name, base_url, wire: Wire::Chat, key_variable: None }
}
