//! Layers and their complaints.

use std::fs;

use insta::assert_snapshot;

use super::*;

/// A home and a project, thrown away afterwards.
struct Place {
    folder: tempfile::TempDir,
    variables: Vec<(&'static str, &'static str)>,
}

impl Place {
    fn new(user: &str, project: &str, variables: &[(&'static str, &'static str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home/.config/fusee");
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("config.toml"), user).unwrap();
        fs::write(folder.path().join("fusee.toml"), project).unwrap();
        Self { folder, variables: variables.to_vec() }
    }

    fn gather(&self, flags: Vec<FlagValue>) -> Result<Config, String> {
        let home = self.folder.path().join("home");
        let mut variables = vec![("HOME", home.to_str().unwrap())];
        variables.extend_from_slice(&self.variables);
        let environment = Environment::made_of(&variables, self.folder.path());
        let path = self.folder.path().join("fusee.toml");
        let here = self.folder.path().display().to_string();
        Config::gather(Some(&path), &environment, flags)
            .map_err(|failure| failure.message.replace(&here, "HERE"))
    }
}

fn shown(config: &Config, key: &str) -> String {
    config.value(key).map_or_else(|| "-".to_owned(), |(value, _)| value.to_string())
}

#[test]
fn each_layer_goes_over_the_ones_before() {
    let user = "max_turns = 1\nmax_tokens = 1\ntemperature = 0.1\ntop_p = 0.1\n";
    let project = "max_tokens = 2\ntemperature = 0.2\ntop_p = 0.2\n";
    let variables = [("FUSEE_TEMPERATURE", "0.3"), ("FUSEE_TOP_P", "0.3")];
    let config = Place::new(user, project, &variables).gather(vec![("top_p", Value::Number(0.4))]).unwrap();
    let held =
        ["max_turns", "max_tokens", "temperature", "top_p", "timeout_s"].map(|key| shown(&config, key));
    assert_eq!(held, ["1", "2", "0.3", "0.4", "300"]);
    let origins: Vec<String> = ["max_turns", "max_tokens", "temperature", "timeout_s"]
        .iter()
        .map(|key| config.value(key).unwrap().1.to_string().rsplit('/').next().unwrap().to_owned())
        .collect();
    assert_eq!(origins, ["config.toml:1", "fusee.toml:1", "FUSEE_TEMPERATURE", "built-in"]);
}

#[test]
fn the_built_in_values_are_those_of_the_libraries() {
    let config = Place::new("", "", &[]).gather(Vec::new()).unwrap();
    assert_eq!(config.limits(), Limits::default());
    assert_eq!(config.options(), RequestOptions::default());
    assert_eq!(config.approve(), Approve::default());
    assert_eq!(config.sandbox(), SandboxMode::default());
    assert_eq!(config.journal().durability, Options::default().durability);
    assert_eq!(config.journal().max_bytes, Options::default().max_bytes);
}

#[test]
fn every_key_reaches_what_it_is_for() {
    let user = "approve = \"never\"\nsandbox = \"off\"\nmax_turns = 2\nmax_tokens = 3\ncompaction_threshold = 0.5\n\
                timeout_s = 4\ntask_timeout_s = 5\nretry_policy = { max_retries = 6, backoff_ms = 7 }\n\
                temperature = 0.8\ntop_p = 0.9\nmax_output_tokens = 10\nreasoning_effort = \"low\"\n\
                journal_durability = \"power\"\njournal_max_mb = 11\n";
    let config = Place::new(user, "", &[]).gather(Vec::new()).unwrap();
    let limits = config.limits();
    assert_eq!(
        (
            limits.max_turns,
            limits.max_tokens,
            limits.compaction_threshold,
            limits.timeout_s,
            limits.task_timeout_s
        ),
        (2, 3, 0.5, 4, Some(5))
    );
    assert_eq!((limits.retry_policy.max_retries, limits.retry_policy.backoff_ms), (6, 7));
    let options = config.options();
    assert_eq!(
        (options.temperature, options.top_p, options.max_output_tokens),
        (Some(0.8), Some(0.9), Some(10))
    );
    assert_eq!(options.reasoning_effort.as_deref(), Some("low"));
    assert_eq!((config.approve(), config.sandbox()), (Approve::Never, SandboxMode::Off));
    assert_eq!((config.journal().durability, config.journal().max_bytes), (Durability::Power, 11 << 20));
}

#[test]
fn the_names_of_the_specification_are_understood() {
    let project = "maxTurns = 7\nmaxTokens = 8\ncompactionThreshold = 0.6\ntimeout = 1500\n\
                   [retryPolicy]\nmaxRetries = 9\nbackoffMs = 10\n";
    let limits = Place::new("", project, &[]).gather(Vec::new()).unwrap().limits();
    assert_eq!((limits.max_turns, limits.max_tokens, limits.compaction_threshold), (7, 8, 0.6));
    assert_eq!(limits.timeout_s, 2, "1500 ms are not cut to one second");
    assert_eq!((limits.retry_policy.max_retries, limits.retry_policy.backoff_ms), (9, 10));
}

#[test]
fn all_that_is_wrong_is_told_at_once_with_its_place() {
    let user = "max_turns = 0\nmodle = \"x\"\n[models.box]\nbase_url = \"ftp://x\"\nkey = 1\n";
    let project = "top_p = \"high\"\nmaxTurns = 1\nmax_turns = 2\napprove = \"auto\"\nretry_policy = 3\n";
    let problems = Place::new(user, project, &[("FUSEE_COLOR", "alway")]).gather(Vec::new()).unwrap_err();
    assert_snapshot!(problems);
}

#[test]
fn a_file_that_is_not_toml_is_told_with_every_fault_of_it() {
    let problems = Place::new("a = = 1\n[x\nmax_turns = 3\n", "", &[]).gather(Vec::new()).unwrap_err();
    assert_snapshot!(problems);
}

#[test]
fn a_project_may_not_decide_what_reaches_outside() {
    let project = "sandbox = \"off\"\napprove = \"auto\"\nbase_url = \"http://evil/v1\"\nmax_turns = 3\n\
                   [models.x]\nmodel = \"y\"\napi_key_env = \"AWS_SECRET\"\n";
    let config = Place::new("sandbox = \"on\"\n", project, &[]).gather(Vec::new()).unwrap();
    assert_eq!(config.sandbox(), SandboxMode::On);
    assert_eq!((shown(&config, "base_url"), shown(&config, "max_turns")), ("-".to_owned(), "3".to_owned()));
    assert!(config.models().is_empty());
    let warnings = config.warnings(Colour::Never).unwrap();
    assert_eq!(warnings.matches("warning[not-trusted]").count(), 4, "{warnings}");
}

#[test]
fn a_trusted_project_may_and_only_as_it_was_trusted() {
    let place = Place::new("", "sandbox = \"off\"\n[models.x]\nmodel = \"y\"\n", &[]);
    let file = place.folder.path().join("fusee.toml");
    let home = place.folder.path().join("home");
    let environment = Environment::made_of(&[("HOME", home.to_str().unwrap())], place.folder.path());
    Trust::read(&environment).grant(&file, &fs::read_to_string(&file).unwrap()).unwrap();
    let config = place.gather(Vec::new()).unwrap();
    assert_eq!((config.sandbox(), config.models().len()), (SandboxMode::Off, 1));
    assert_eq!(config.warnings(Colour::Never), None);
    fs::write(&file, "sandbox = \"off\"\n").unwrap();
    assert_eq!(place.gather(Vec::new()).unwrap().sandbox(), SandboxMode::On);
    fs::write(&file, "sandbox = \"off\"\n[models.x]\nmodel = \"y\"\n").unwrap();
    assert_eq!(place.gather(Vec::new()).unwrap().sandbox(), SandboxMode::Off);
    assert!(Trust::read(&environment).revoke(&file).unwrap());
    assert_eq!(place.gather(Vec::new()).unwrap().sandbox(), SandboxMode::On);
}

#[test]
fn what_confined_commands_may_use_and_reach_comes_from_the_users_file() {
    let user = "[sandbox]\nnetwork = \"on\"\nread = [\"/opt/x\"]\nwrite = [\"~/y\"]\nmemory_mb = 64\nprocesses = 9\n\
                cpu_s = 8\nfile_mb = 7\n";
    let place = Place::new(user, "", &[]);
    let environment = Environment::made_of(&[("HOME", "/home/me")], "/");
    let confine = place.gather(Vec::new()).unwrap().confine(&environment);
    let allowance = Allowance { cpu_s: 8, memory_bytes: 64 << 20, processes: 9, file_bytes: 7 << 20 };
    let (read, write) = (vec!["/opt/x".into()], vec!["/home/me/y".into()]);
    assert_eq!(confine, Confine { network: Network::Machine, read, write, allowance });
}

#[test]
fn a_password_in_a_url_is_refused_because_urls_are_written_down() {
    let problems =
        Place::new("base_url = \"http://me:secret@host/v1\"\n", "", &[]).gather(Vec::new()).unwrap_err();
    assert!(problems.contains("would end up in the journal"), "{problems}");
}

#[test]
fn a_variable_with_a_slip_is_noticed_and_others_are_left_alone() {
    let config =
        Place::new("", "", &[("FUSEE_MAX_TURN", "3"), ("FUSEE_KILL_AT", "3")]).gather(Vec::new()).unwrap();
    let warnings = config.warnings(Colour::Never).unwrap();
    assert!(warnings.contains("the variable FUSEE_MAX_TURN sets nothing"), "{warnings}");
    assert!(!warnings.contains("KILL"), "{warnings}");
}

#[test]
fn names_of_keys_aliases_and_variables_are_unique() {
    let mut names: Vec<String> = KEYS.iter().map(|key| key.name.to_owned()).collect();
    names.extend(ALIASES.iter().map(|alias| alias.name.to_owned()));
    names.extend(KEYS.iter().map(Key::variable));
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(ALIASES.iter().all(|alias| Key::named(alias.key).is_some()));
}

#[test]
fn the_schema_agrees_with_the_parser() {
    let validator = jsonschema::validator_for(&json_schema()).unwrap();
    let cases = [
        ("max_turns = 3\nmaxTokens = 4\n[retryPolicy]\nmaxRetries = 1\n[models.x]\nmodel = \"y\"\n", true),
        ("timeout = 100\nretry_policy.backoff_ms = 3\n", true),
        ("sandbox = \"off\"\n", true),
        ("[sandbox]\nmode = \"off\"\nread = [\"/opt\", \"~/x\"]\nprocesses = 100\n", true),
        ("sandbox.read = [\"relative\"]\n", false),
        ("sandbox.nonsense = 1\n", false),
        ("max_turns = 0\n", false),
        ("max_turns = \"3\"\n", false),
        ("unknown = 1\n", false),
        ("[models.x]\nbase_url = \"http://h/v1\"\n", false),
        ("color = \"blue\"\n", false),
    ];
    for (toml, fits) in cases {
        let value: serde_json::Value = toml::from_str(toml).unwrap();
        assert_eq!(validator.is_valid(&value), fits, "the schema on {toml}");
        assert_eq!(Place::new(toml, "", &[]).gather(Vec::new()).is_ok(), fits, "the parser on {toml}");
    }
}
