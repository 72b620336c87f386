//! Opening models by name.

use std::time::Duration;

use super::*;
use crate::Secret;

fn parse(name: &str) -> String {
    match ModelRef::parse(name) {
        Ok(ModelRef::Server { provider, model }) => {
            format!("{model} at {}", provider.map_or("?", |provider| provider.name))
        }
        Ok(target) => format!("{target:?}"),
        Err(error) => format!("! {error}"),
    }
}

fn models() -> Models {
    Models::new(|| SystemTime::UNIX_EPOCH)
}

#[test]
fn names_are_read() {
    let read: Vec<_> = [
        "script:a/b.jsonl",
        "replay:c:d",
        "local:/m/a.gguf",
        "openai:gpt-5",
        "ollama:qwen2.5-coder:1.5b",
        "openrouter:x/y:free",
        "qwen2.5-coder:1.5b",
        "plain",
        "script:",
        "local:",
        "groq:",
        " ",
    ]
    .map(parse)
    .to_vec();
    assert_eq!(
        read,
        [
            "Script(\"a/b.jsonl\")",
            "Replay(\"c:d\")",
            "Local(\"/m/a.gguf\")",
            "gpt-5 at openai",
            "qwen2.5-coder:1.5b at ollama",
            "x/y:free at openrouter",
            "qwen2.5-coder:1.5b at ?",
            "plain at ?",
            "! invalid model name `script:`: missing file",
            "! invalid model name `local:`: missing file; use local:PATH.gguf",
            "! invalid model name `groq:`: missing model",
            "! the model name is empty",
        ]
    );
}

#[test]
fn the_same_name_gives_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    std::fs::write(&path, "{\"text\":\"x\"}\n").unwrap();
    let name = format!("script:{}", path.display());
    let models = models();
    let first = models.open(&name, &Connection::default()).unwrap();
    let silent = Connection { silence: Duration::from_secs(1), ..Connection::default() };
    let second = models.open(&name, &silent).unwrap();
    assert!(Arc::ptr_eq(&first, &second), "tasks with other settings share the script's lines");

    let first = models.open("llama.cpp:a", &Connection::default()).unwrap();
    assert!(Arc::ptr_eq(&first, &models.open("llama.cpp:a", &Connection::default()).unwrap()));
    assert!(!Arc::ptr_eq(&first, &models.open("llama.cpp:a", &silent).unwrap()));
    models.open("llama.cpp:b", &Connection::default()).unwrap();
    assert_eq!(models.shared.lock().endpoints.len(), 2, "a and b share their connections");
}

#[test]
fn what_is_missing_is_said() {
    let fault = |name: &str, settings: Connection| models().open(name, &settings).err().unwrap().to_string();
    assert_eq!(
        fault("gpt", Connection::default()),
        "no server known for model `gpt`; set its base URL, or use PROVIDER:MODEL with one of openai, \
         anthropic, openrouter, groq, deepseek, mistral, together, ollama, llama.cpp, lmstudio, vllm, script:FILE or replay:FILE"
    );
    let at = |url: &str| Connection { base_url: Some(url.into()), ..Connection::default() };
    assert_eq!(
        fault("m", at("localhost:8080")),
        "invalid base URL `localhost:8080`: it must start with http:// or https:// and include a host"
    );
    assert_eq!(fault("m", at("not a url")), "invalid base URL `not a url`: relative URL without a base");
    let headers = vec![("bad name".to_owned(), Secret::new("v"))];
    assert_eq!(fault("m", Connection { headers, ..at("http://h") }), "invalid header name `bad name`");
    let key = Some(Secret::new("line\nbreak"));
    assert_eq!(
        fault("m", Connection { api_key: key, ..at("http://h") }),
        "the value of `the API key` is not valid in a header"
    );
    assert!(
        fault("m", Connection { ca_file: Some("/no/ca.pem".into()), ..at("https://h") })
            .starts_with("cannot read certificates from /no/ca.pem: "),
    );
}

#[test]
fn keys_are_not_shown() {
    let settings = Connection {
        api_key: Some(Secret::new("sk-very-secret")),
        headers: vec![("x-key".into(), Secret::new("also-secret"))],
        ..Connection::default()
    };
    let shown = format!("{settings:?}");
    assert!(!shown.contains("secret"), "{shown}");
    assert!(shown.contains("Secret([key])"));
}

#[cfg(not(feature = "local"))]
#[test]
fn a_binary_without_local_models_says_how_to_get_one_with_them() {
    let error = models().open("local:/m/a.gguf", &Connection::default()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "`local:/m/a.gguf` is an in-process model, but this binary was built without support for them; build it with \
         `cargo build --release --features local`, or serve the file with llama.cpp and use llama.cpp:NAME"
    );
}
