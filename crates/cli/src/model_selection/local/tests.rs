//! Resolving `local:…` to a file, its profile and its context size.

use fusee::engine::model::{EditFormat, ResolvedModel, ToolFormat};

use super::*;
use crate::config::Config;
use crate::model_selection::named;

fn choose(name: &str, toml: &str, variables: &[(&str, &str)]) -> Result<ResolvedModel, CliError> {
    let home = tempfile::tempdir().unwrap();
    let mut all = vec![("HOME", "/home/ann"), ("XDG_CONFIG_HOME", home.path().to_str().unwrap())];
    all.extend_from_slice(variables);
    let environment = Environment::from_variables(&all, home.path());
    let folder = environment.config_folder().unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), toml).unwrap();
    named(name, &Config::gather(None, &environment, Vec::new()).unwrap(), &environment)
}

#[test]
fn a_file_is_held_to_schemas_costs_nothing_and_has_the_profile_of_its_name() {
    let choice = choose("local:/m/SmolLM2-135M-Instruct.Q4_1.gguf", "", &[]).unwrap();
    assert_eq!(choice.name, "local:/m/SmolLM2-135M-Instruct.Q4_1.gguf");
    let traits = choice.connection.traits;
    assert_eq!(
        (traits.tool_format, traits.one_call, traits.edit_format),
        (ToolFormat::Schema, true, EditFormat::Whole)
    );
    assert!(choice.price.unwrap().is_free());
    assert_eq!(choice.connection.api_key, None);
    let asked = choose("local:/m/a.gguf", "tool_format = \"native\"\n", &[]).unwrap();
    assert_eq!(asked.connection.traits.tool_format, ToolFormat::Native);
}

#[test]
fn a_tilde_is_the_home_folder() {
    assert_eq!(choose("local:~/m/a.gguf", "", &[]).unwrap().name, "local:/home/ann/m/a.gguf");
    assert_eq!(choose("local:a~/b.gguf", "", &[]).unwrap().name, "local:a~/b.gguf");
}

#[test]
fn an_entry_names_the_file_and_the_size_of_its_context() {
    let toml = "[models.local]\nmodel = \"local:/m/a.gguf\"\ncontext_tokens = 4096\n";
    let choice = choose("local", toml, &[]).unwrap();
    assert_eq!(choice.name, "local:/m/a.gguf");
    assert_eq!((choice.context_tokens, choice.connection.context_tokens), (Some(4096), Some(4096)));
}

#[test]
fn local_alone_is_asked_which_file() {
    let failure = choose("local", "", &[]).unwrap_err();
    assert_eq!(failure.message, "`local` needs a model file");
    assert_eq!(
        failure.help.unwrap(),
        "pass -m local:PATH.gguf, or name it in the configuration:\n[models.local]\nmodel = \"local:PATH.gguf\""
    );
    // A server may have a model of this name.
    let variables = [("FUSEE_BASE_URL", "http://127.0.0.1:9/v1")];
    assert_eq!(choose("local", "", &variables).unwrap().name, "local");
}
