//! Known providers, by the prefix in `provider:model`. This is data; the app determines the keys and
//! addresses a user actually has.

use crate::Wire;

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
    own("ollama", "http://127.0.0.1:11434/v1"),
    own("llama.cpp", "http://127.0.0.1:8080/v1"),
    own("lmstudio", "http://127.0.0.1:1234/v1"),
    own("vllm", "http://127.0.0.1:8000/v1"),
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
}

const fn hosted(name: &'static str, base_url: &'static str, key_variable: &'static str) -> Provider {
    Provider { name, base_url, wire: Wire::Chat, key_variable: Some(key_variable) }
}

const fn own(name: &'static str, base_url: &'static str) -> Provider {
    Provider { name, base_url, wire: Wire::Chat, key_variable: None }
}
