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

const fn phrase(who: &'static str, all_of: &'static [&'static str]) -> ErrorPhrase {
    ErrorPhrase { who, all_of }
}

/// The conversation exceeds the context window.
pub(super) const OVERFLOW: &[ErrorPhrase] = &[
    phrase("OpenAI, Groq, DeepSeek: code", &["context_length_exceeded"]),
    phrase("OpenAI, vLLM, OpenRouter", &["maximum context length", "tokens"]),
    phrase("OpenAI responses", &["exceeds the context window"]),
    phrase("OpenAI, a prompt above the limit a minute", &["tokens must be reduced"]),
    phrase("Anthropic", &["prompt is too long"]),
    phrase("Anthropic", &["exceed context limit"]),
    phrase("Anthropic: type", &["request_too_large"]),
    phrase("llama.cpp: type", &["exceed_context_size_error"]),
    phrase("llama.cpp", &["exceeds the available context size"]),
    phrase("llama.cpp", &["context size has been exceeded"]),
    phrase("llama.cpp", &["input is too large to process"]),
    phrase("vLLM", &["longer than the maximum model length"]),
    phrase("vLLM", &["reduce the length of the input"]),
    phrase("SGLang", &["longer than the model's context length"]),
    phrase("Ollama", &["exceeds the context length"]),
    phrase("Ollama", &["exceeded max context length"]),
    phrase("Groq", &["reduce the length of the messages"]),
    phrase("Groq", &["request too large for model"]),
    phrase("Mistral", &["too large for model with", "maximum context length"]),
    phrase("Gemini", &["input token count", "exceeds the maximum number of tokens"]),
    phrase("LM Studio", &["greater than the context length"]),
    phrase("LM Studio", &["loaded with context length of only"]),
    phrase("Together, TGI", &["inputs` tokens + `max_new_tokens` must be"]),
    phrase("TGI", &["inputs` must have less than"]),
    phrase("xAI", &["maximum prompt length is"]),
    phrase("Cohere", &["too many tokens", "in the prompt cannot exceed"]),
    phrase("Moonshot", &["exceeded model token limit"]),
    phrase("GitHub: code", &["model_max_prompt_tokens_exceeded"]),
    phrase("DashScope", &["range of input length should be"]),
    phrase("Zhipu", &["prompt exceeds max length"]),
    phrase("MiniMax", &["context window exceeds limit"]),
    phrase("Bedrock", &["input is too long for requested model"]),
];

/// The account's quota or credit is exhausted.
pub(super) const QUOTA: &[ErrorPhrase] = &[
    phrase("OpenAI: code", &["insufficient_quota"]),
    phrase("OpenAI: code", &["billing_hard_limit_reached"]),
    phrase("OpenAI: code", &["billing_not_active"]),
    phrase("OpenAI", &["account is not active"]),
    phrase("Anthropic", &["credit balance is too low"]),
    phrase("OpenRouter", &["insufficient credits"]),
    phrase("OpenRouter", &["requires more credits"]),
    phrase("DeepSeek", &["insufficient balance"]),
];

/// Quota exhausted, unless the server states when to retry.
pub(super) const QUOTA_UNLESS_TIMED: &[ErrorPhrase] =
    &[phrase("OpenAI, Gemini", &["exceeded your current quota"]), phrase("Mistral", &["monthly limit"])];

/// Wrong key, reported with a status other than 401.
pub(super) const AUTH: &[ErrorPhrase] = &[
    phrase("OpenAI: code", &["invalid_api_key"]),
    phrase("Anthropic: type", &["authentication_error"]),
    phrase("Gemini", &["api key not valid"]),
    phrase("many", &["invalid api key"]),
];

/// Temporary overload, reported with a status that normally means something else.
pub(super) const OVERLOADED: &[ErrorPhrase] =
    &[phrase("Anthropic: type", &["overloaded_error"]), phrase("many", &["overloaded"])];

/// The model is not loaded yet.
pub(super) const LOADING: &[ErrorPhrase] = &[
    phrase("llama.cpp, Ollama", &["loading model"]),
    phrase("TGI, Hugging Face", &["is currently loading"]),
    phrase("LM Studio, TabbyAPI", &["model is loading"]),
    phrase("llama-swap, LocalAI", &["still loading"]),
    phrase("KServe, Triton", &["model", "is not ready"]),
];

/// Too many requests, reported inside a stream or with a status other than 429.
pub(super) const RATE_LIMITED: &[ErrorPhrase] = &[
    phrase("OpenAI, Groq: code", &["rate_limit_exceeded"]),
    phrase("Anthropic: type", &["rate_limit_error"]),
];
