//! Error responses of real servers.

use super::*;

fn kind_of(status: u16, body: &str) -> ErrorKind {
    in_response(status, None, body).kind
}

/// Bodies as sent by these servers.
const OVERFLOWS: &[(&str, u16, Option<u64>, &str)] = &[
    (
        "OpenAI",
        400,
        Some(128_000),
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 131000 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    ),
    (
        "OpenAI responses",
        400,
        None,
        r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
    ),
    (
        "OpenAI, above the limit a minute",
        429,
        Some(30_000),
        r#"{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 35000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}"#,
    ),
    (
        "Anthropic",
        400,
        Some(200_000),
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
    ),
    (
        "Anthropic",
        400,
        Some(200_000),
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again"}}"#,
    ),
    (
        "Anthropic",
        413,
        None,
        r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
    ),
    (
        "llama.cpp",
        400,
        Some(4_096),
        r#"{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
    ),
    (
        "llama.cpp",
        500,
        None,
        r#"{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#,
    ),
    (
        "llama.cpp",
        500,
        None,
        r#"{"error":{"code":500,"message":"input is too large to process. increase the physical batch size","type":"server_error"}}"#,
    ),
    (
        "vLLM",
        400,
        Some(4_096),
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}"#,
    ),
    (
        "vLLM",
        400,
        Some(4_096),
        r#"{"error":{"message":"The decoder prompt (length 5121) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.","type":"BadRequestError","param":null,"code":400}}"#,
    ),
    (
        "Ollama",
        400,
        None,
        r#"{"error":{"message":"the input length exceeds the context length","type":"api_error","param":null,"code":null}}"#,
    ),
    ("Ollama", 400, None, r#"{"error":"prompt too long; exceeded max context length by 4 tokens"}"#),
    (
        "OpenRouter",
        400,
        Some(32_768),
        r#"{"error":{"message":"This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (38000 of text input, 2000 in the output).","code":400}}"#,
    ),
    (
        "OpenRouter, a provider behind it",
        400,
        None,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 9 tokens > 8 maximum\"}}","provider_name":"Anthropic"}}}"#,
    ),
    (
        "Groq",
        400,
        None,
        r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    ),
    (
        "Groq",
        413,
        Some(6_000),
        r#"{"error":{"message":"Request too large for model `llama-3.1-8b-instant` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}"#,
    ),
    (
        "Mistral",
        400,
        Some(32_768),
        r#"{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}"#,
    ),
    (
        "Gemini",
        400,
        Some(1_048_576),
        r#"[{"error":{"code":400,"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
    ),
    (
        "LM Studio",
        400,
        None,
        r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length"}"#,
    ),
    (
        "xAI",
        400,
        Some(131_072),
        r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}"#,
    ),
    (
        "vLLM",
        400,
        Some(4_096),
        r#"{"error":{"message":"You passed 3500 input tokens and requested 1000 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 3096 tokens. Please reduce the length of the input prompt.","type":"BadRequestError","code":400}}"#,
    ),
    (
        "llama.cpp",
        400,
        Some(8_192),
        r#"{"error":{"code":400,"message":"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error"}}"#,
    ),
    (
        "LM Studio",
        400,
        Some(4_096),
        r#"{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}"#,
    ),
    (
        "LM Studio",
        400,
        Some(4_096),
        r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5000>= n_ctx: 4096). Try to load the model with a larger context length"}"#,
    ),
    (
        "SGLang",
        400,
        Some(8_192),
        r#"{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequestError","code":400}"#,
    ),
    (
        "TGI",
        422,
        Some(4_096),
        r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`","error_type":"validation"}"#,
    ),
    (
        "Cohere",
        400,
        Some(4_081),
        r#"{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000. Try using a shorter prompt, or use a smaller max_tokens value."}"#,
    ),
    (
        "Moonshot",
        400,
        Some(8_192),
        r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 8192","type":"invalid_request_error"}}"#,
    ),
    (
        "Fireworks",
        400,
        Some(32_767),
        r#"{"error":{"object":"error","type":"invalid_request_error","message":"The prompt is too long: 40000, model maximum context length: 32767"}}"#,
    ),
    (
        "Cerebras",
        400,
        Some(8_192),
        r#"{"message":"Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}"#,
    ),
    (
        "GitHub",
        400,
        Some(64_000),
        r#"{"error":{"message":"prompt token count of 70,000 exceeds the limit of 64,000","code":"model_max_prompt_tokens_exceeded"}}"#,
    ),
    (
        "DashScope",
        400,
        Some(30_720),
        r#"{"error":{"code":"invalid_parameter_error","message":"Range of input length should be [1, 30720]","type":"invalid_request_error"}}"#,
    ),
    ("Zhipu", 400, None, r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#),
    (
        "MiniMax",
        400,
        None,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"invalid params, context window exceeds limit (2013)"}}"#,
    ),
];

#[test]
fn an_overflow_and_the_stated_context_size_are_recognised_in_every_wording() {
    for (who, status, size, body) in OVERFLOWS {
        let error = in_response(*status, None, body);
        assert_eq!((error.kind, error.context_tokens()), (ErrorKind::Overflow, *size), "{who}: {body}");
    }
}

#[test]
fn an_empty_account_is_not_a_crowded_server() {
    let quotas = [
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
        ),
        (
            402,
            r#"{"error":{"message":"Insufficient credits. Add more using https://openrouter.ai/credits","code":402}}"#,
        ),
        (
            402,
            r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}"#,
        ),
        (
            403,
            r#"{"error":{"message":"Your account is not active, please check your billing details on our website.","code":"billing_not_active"}}"#,
        ),
        (429, r#"{"error":{"message":"You exceeded your current quota","code":429}}"#),
    ];
    for (status, body) in quotas {
        assert_eq!(kind_of(status, body), ErrorKind::Quota, "{body}");
    }
    let crowds = [
        r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s.","type":"requests","code":"rate_limit_exceeded"}}"#,
        r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. Please retry in 12.5s.","status":"RESOURCE_EXHAUSTED"}}]"#,
    ];
    for body in crowds {
        assert_eq!(kind_of(429, body), ErrorKind::RateLimited, "{body}");
    }
}

#[test]
fn a_server_that_loads_its_model_says_so_in_many_words() {
    for body in [
        r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
        r#"{"error":"llm server loading model"}"#,
        r#"{"error":"Model mistralai/Mistral-7B is currently loading","estimated_time":20.0}"#,
        r#"{"detail":"Model with name coder is not ready"}"#,
    ] {
        assert_eq!(kind_of(503, body), ErrorKind::Loading, "{body}");
    }
    // Not reported as loading if the server failed to load the model or rejects the request.
    assert_eq!(kind_of(500, r#"{"error":"error loading model"}"#), ErrorKind::Server);
    assert_eq!(kind_of(503, r#"{"error":"no server available"}"#), ErrorKind::Server);
}

#[test]
fn the_status_decides_where_the_words_do_not() {
    let kinds: Vec<_> = [301, 400, 401, 403, 404, 408, 409, 413, 422, 425, 429, 500, 502, 503, 504, 529]
        .map(|status| (status, kind_of(status, "")))
        .to_vec();
    use ErrorKind::{Auth, Invalid, RateLimited, Server, Timeout};
    assert_eq!(
        kinds,
        [
            (301, Invalid),
            (400, Invalid),
            (401, Auth),
            (403, Auth),
            (404, Invalid),
            (408, Timeout),
            (409, Server),
            (413, Invalid),
            (422, Invalid),
            (425, RateLimited),
            (429, RateLimited),
            (500, Server),
            (502, Server),
            (503, Server),
            (504, Server),
            (529, Server),
        ]
    );
}

#[test]
fn a_wrong_key_with_another_status() {
    let gemini = r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#;
    assert_eq!(kind_of(400, gemini), ErrorKind::Auth);
}

#[test]
fn the_servers_own_words_in_every_shape() {
    let words = |body: &str| in_response(400, None, body).message;
    assert_eq!(words(r#"{"error":{"message":"a"}}"#), "a");
    assert_eq!(words(r#"{"error":"b"}"#), "b");
    assert_eq!(words(r#"{"message":"c"}"#), "c");
    assert_eq!(words(r#"{"detail":"d"}"#), "d");
    assert_eq!(words(r#"{"detail":[{"loc":["body"],"msg":"e"},{"msg":"f"}]}"#), "e; f");
    assert_eq!(words(r#"[{"error":{"message":"g"}}]"#), "g");
    assert_eq!(words(r#""h""#), "h");
    assert_eq!(words("plain i\n"), "plain i");
    assert_eq!(words("<html><head><TITLE>502 j</TITLE></head>"), "502 j");
    assert_eq!(words(""), "the server rejected the request without giving a reason");
    assert_eq!(words("{}"), "the server rejected the request without giving a reason");
    assert_eq!(words(&"k".repeat(2_000)), format!("{}…", "k".repeat(300)));
    assert_eq!(
        words(r#"{"error":{"message":"Provider returned error","metadata":{"raw":"upstream is down"}}}"#),
        "Provider returned error: upstream is down"
    );
}

#[test]
fn a_wait_told_only_in_words() {
    let wait = |words: &str| in_response(429, None, words).retry_after_ms;
    assert_eq!(wait("Please try again in 6.2s."), Some(6_200));
    assert_eq!(wait("Please try again in 340ms. Visit"), Some(340));
    assert_eq!(wait("Please retry in 2 minutes"), Some(120_000));
    assert_eq!(wait("retry after 3 seconds"), Some(3_000));
    assert_eq!(wait("Please try again in a moment"), None);
    assert_eq!(wait("Please try again in 3 fortnights"), None);
    assert_eq!(in_response(429, Some(5), "try again in 9s").retry_after_ms, Some(5), "the header is exact");
}
