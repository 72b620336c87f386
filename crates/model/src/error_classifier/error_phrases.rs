//! Phrases by which servers report an overlong conversation, an exhausted account or a wrong key. To support
//! a new provider, add a line here and in the tests.

/// A phrase with one meaning, and the servers that use it.
pub(super) struct ErrorPhrase {
    /// Server names, for readers of the table.
    #[expect(dead_code, reason = "documents the source of a phrase")]
    pub who: &'static str,
    /// All of these must occur in the lower-case message or in the error's code or type.
    pub all_of: &'static [&'static str],
}

impl ErrorPhrase {
    pub(super) fn is_in(&self, message: &str, code: &str) -> bool {
        self.all_of.iter().all(|words| message.contains(words) || code.contains(words))
    }
}

const fn of(who: &'static str, all_of: &'static [&'static str]) -> ErrorPhrase {
    ErrorPhrase { who, all_of }
}

/// The conversation exceeds the context window.
pub(super) const OVERFLOW: &[ErrorPhrase] = &[
    of("OpenAI, Groq, DeepSeek: code", &["context_length_exceeded"]),
    of("OpenAI, vLLM, OpenRouter", &["maximum context length", "tokens"]),
    of("OpenAI responses", &["exceeds the context window"]),
    of("OpenAI, a prompt above the limit a minute", &["tokens must be reduced"]),
    of("Anthropic", &["prompt is too long"]),
    of("Anthropic", &["exceed context limit"]),
    of("Anthropic: type", &["request_too_large"]),
    of("llama.cpp: type", &["exceed_context_size_error"]),
    of("llama.cpp", &["exceeds the available context size"]),
    of("llama.cpp", &["context size has been exceeded"]),
    of("llama.cpp", &["input is too large to process"]),
    of("vLLM", &["longer than the maximum model length"]),
    of("vLLM", &["reduce the length of the input"]),
    of("SGLang", &["longer than the model's context length"]),
    of("Ollama", &["exceeds the context length"]),
    of("Ollama", &["exceeded max context length"]),
    of("Groq", &["reduce the length of the messages"]),
    of("Groq", &["request too large for model"]),
    of("Mistral", &["too large for model with", "maximum context length"]),
    of("Gemini", &["input token count", "exceeds the maximum number of tokens"]),
    of("LM Studio", &["greater than the context length"]),
    of("LM Studio", &["loaded with context length of only"]),
    of("Together, TGI", &["inputs` tokens + `max_new_tokens` must be"]),
    of("TGI", &["inputs` must have less than"]),
    of("xAI", &["maximum prompt length is"]),
    of("Cohere", &["too many tokens", "in the prompt cannot exceed"]),
    of("Moonshot", &["exceeded model token limit"]),
    of("GitHub: code", &["model_max_prompt_tokens_exceeded"]),
    of("DashScope", &["range of input length should be"]),
    of("Zhipu", &["prompt exceeds max length"]),
    of("MiniMax", &["context window exceeds limit"]),
    of("Bedrock", &["input is too long for requested model"]),
];

/// The account's quota or credit is exhausted.
pub(super) const QUOTA: &[ErrorPhrase] = &[
    of("OpenAI: code", &["insufficient_quota"]),
    of("OpenAI: code", &["billing_hard_limit_reached"]),
    of("OpenAI: code", &["billing_not_active"]),
    of("OpenAI", &["account is not active"]),
    of("Anthropic", &["credit balance is too low"]),
    of("OpenRouter", &["insufficient credits"]),
    of("OpenRouter", &["requires more credits"]),
    of("DeepSeek", &["insufficient balance"]),
];

/// Quota exhausted, unless the server states when to retry.
pub(super) const QUOTA_UNLESS_TIMED: &[ErrorPhrase] =
    &[of("OpenAI, Gemini", &["exceeded your current quota"]), of("Mistral", &["monthly limit"])];

/// Wrong key, reported with a status other than 401.
pub(super) const AUTH: &[ErrorPhrase] = &[
    of("OpenAI: code", &["invalid_api_key"]),
    of("Anthropic: type", &["authentication_error"]),
    of("Gemini", &["api key not valid"]),
    of("many", &["invalid api key"]),
];

/// Temporary overload, reported with a status that normally means something else.
pub(super) const OVERLOADED: &[ErrorPhrase] =
    &[of("Anthropic: type", &["overloaded_error"]), of("many", &["overloaded"])];

/// The model is not loaded yet.
pub(super) const LOADING: &[ErrorPhrase] = &[
    of("llama.cpp, Ollama", &["loading model"]),
    of("TGI, Hugging Face", &["is currently loading"]),
    of("LM Studio, TabbyAPI", &["model is loading"]),
    of("llama-swap, LocalAI", &["still loading"]),
    of("KServe, Triton", &["model", "is not ready"]),
];

/// Too many requests, reported inside a stream or with a status other than 429.
pub(super) const RATE_LIMITED: &[ErrorPhrase] =
    &[of("OpenAI, Groq: code", &["rate_limit_exceeded"]), of("Anthropic: type", &["rate_limit_error"])];
