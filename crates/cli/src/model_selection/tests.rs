//! Resolving names to servers, and API keys only to the servers they belong to.

use super::*;
use crate::config::Value;
use crate::model_selection::discovery::LocalServer;

fn config(toml: &str, environment: &Environment, flags: &[(&'static str, &str)]) -> Config {
    let folder = environment.config_folder().unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), toml).unwrap();
    let flags = flags.iter().map(|(name, value)| (*name, Value::Text((*value).to_owned()))).collect();
    Config::gather(None, environment, flags).unwrap()
}

struct Chosen {
    name: String,
    base_url: Option<String>,
    key: Option<String>,
}

fn choose(
    name: &str,
    toml: &str,
    flags: &[(&'static str, &str)],
    variables: &[(&str, &str)],
) -> Result<Chosen, CliError> {
    let home = tempfile::tempdir().unwrap();
    let mut all = vec![("HOME", home.path().to_str().unwrap())];
    all.extend_from_slice(variables);
    let environment = Environment::from_variables(&all, home.path());
    let choice = named(name, &config(toml, &environment, flags), &environment)?;
    let key = choice.connection.api_key.as_ref().map(|key| key.reveal().to_owned());
    Ok(Chosen { name: choice.name, base_url: choice.connection.base_url, key })
}

#[test]
fn a_providers_key_goes_to_the_provider() {
    let chosen = choose("openai:gpt", "", &[], &[("OPENAI_API_KEY", "sk-secret-1")]).unwrap();
    assert_eq!((chosen.base_url.as_deref(), chosen.key.as_deref()), (None, Some("sk-secret-1")));
}

#[test]
fn a_missing_key_is_named_with_its_variable() {
    let failure = choose("openai:gpt", "", &[], &[]).err().unwrap();
    assert_eq!(failure.message, "missing API key for model `openai:gpt`: OPENAI_API_KEY is not set");
    assert!(choose("openai:gpt", "", &[("base_url", "http://127.0.0.1:1/v1")], &[]).is_ok());
}

#[test]
fn an_entry_of_the_configuration_is_resolved_and_a_flag_goes_before_it() {
    let toml =
        "[models.mine]\nmodel = \"qwen\"\nbase_url = \"http://box:8080/v1\"\napi_key_env = \"BOX_KEY\"\n";
    let variables = [("BOX_KEY", "box-secret")];
    let chosen = choose("mine", toml, &[], &variables).unwrap();
    assert_eq!(
        (chosen.name.as_str(), chosen.base_url.as_deref(), chosen.key.as_deref()),
        ("qwen", Some("http://box:8080/v1"), Some("box-secret"))
    );
    let chosen = choose("mine", toml, &[("base_url", "http://other/v1")], &variables).unwrap();
    assert_eq!(chosen.base_url.as_deref(), Some("http://other/v1"));
    let failure = choose("mine", toml, &[], &[]).err().unwrap();
    assert_eq!(failure.message, "missing API key for model `mine`: BOX_KEY is not set");
}

#[test]
fn the_base_url_variable_of_a_provider_counts_and_serves_plain_names() {
    let variables = [("OPENAI_BASE_URL", "http://proxy/v1/"), ("OPENAI_API_KEY", "sk-secret-1")];
    for name in ["openai:m", "m"] {
        let chosen = choose(name, "", &[], &variables).unwrap();
        assert_eq!(chosen.base_url.as_deref(), Some("http://proxy/v1"));
        assert_eq!(chosen.key.as_deref(), Some("sk-secret-1"));
    }
}

#[test]
fn a_password_in_a_variable_does_not_reach_the_journal() {
    let failure =
        choose("openai:m", "", &[], &[("OPENAI_BASE_URL", "http://me:hunter22@host/v1")]).err().unwrap();
    assert!(failure.message.starts_with("OPENAI_BASE_URL: "), "{}", failure.message);
    assert!(!failure.message.contains("hunter22"), "{}", failure.message);
}

#[test]
fn a_name_nobody_knows_comes_with_near_ones() {
    let failure = choose("olama:qwen", "", &[], &[]).err().unwrap();
    assert_eq!(failure.message, "no server known for model `olama:qwen`");
    assert!(failure.help.unwrap().starts_with("did you mean `ollama`?\n"));
}

#[test]
fn only_a_free_model_is_taken_unasked_and_only_if_there_is_no_choice() {
    let ollama = Provider::named("ollama").unwrap();
    let openai = Provider::named("openai").unwrap();
    let found = |models: &[&str], keys: &[&'static Provider]| DiscoveredModels {
        keys: keys.to_vec(),
        servers: vec![LocalServer {
            provider: ollama,
            base_url: ollama.base_url.to_owned(),
            models: models.iter().map(|name| (*name).to_owned()).collect(),
        }],
    };
    assert_eq!(only_local_model(&found(&["q:7b"], &[openai])).unwrap(), "ollama:q:7b");
    let failure = only_local_model(&found(&[], &[openai])).unwrap_err();
    assert_eq!(failure.exit, run::ExitStatus::Usage);
    assert!(failure.help.unwrap().starts_with("OPENAI_API_KEY is set: fusee run -m openai:MODEL …\n"));
    let failure = only_local_model(&found(&["a", "b"], &[])).unwrap_err();
    assert_eq!(failure.help.unwrap(), "fusee run -m ollama:a …\nfusee run -m ollama:b …");
    assert_eq!(only_local_model(&found(&[], &[])).unwrap_err().message, "no model configured and none found");
}

#[test]
fn a_chosen_key_is_not_in_any_debug_output() {
    let home = tempfile::tempdir().unwrap();
    let variables = [("HOME", home.path().to_str().unwrap()), ("OPENAI_API_KEY", "sk-very-secret")];
    let environment = Environment::from_variables(&variables, home.path());
    let choice = named("openai:m", &config("", &environment, &[]), &environment).unwrap();
    assert!(!format!("{choice:?}").contains("very-secret"));
}

#[test]
fn ollamas_own_variable_says_where_it_is() {
    for (said, url) in [
        ("box", "http://box:11434/v1"),
        ("box:9000", "http://box:9000/v1"),
        (":9000", "http://127.0.0.1:9000/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("[::1]:9000", "http://[::1]:9000/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ("https://box.example/", "https://box.example:443/v1"),
        ("http://box:9000/v1", "http://box:9000/v1"),
    ] {
        let settings = choose("ollama:m", "", &[], &[("OLLAMA_HOST", said)]).unwrap();
        assert_eq!(settings.base_url.as_deref(), Some(url), "{said}");
    }
    // Our own variable has precedence over Ollama's.
    let both = [("OLLAMA_HOST", "a"), ("OLLAMA_BASE_URL", "http://b:1/v1")];
    let settings = choose("ollama:m", "", &[], &both).unwrap();
    assert_eq!(settings.base_url.as_deref(), Some("http://b:1/v1"));
    let settings = choose("vllm:m", "", &[], &[("VLLM_BASE_URL", "http://gpu:8000/v1")]).unwrap();
    assert_eq!(settings.base_url.as_deref(), Some("http://gpu:8000/v1"));
}
