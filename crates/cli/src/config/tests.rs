//! Layers and their diagnostics.

use std::fs;

use fusee::engine::journal::Durability;
use insta::assert_snapshot;

use fusee::engine::run::SandboxOptions;
use fusee::engine::tools::sandbox::{Network, ResourceLimits};

use super::*;

/// A temporary home and project.
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
        let environment = Environment::from_variables(&variables, self.folder.path());
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

/// The layers listed on the configuration page, and a setting made in each.
#[test]
fn the_configuration_page_lists_the_layers_in_their_order() {
    let pages = crate::command::docs::reference::pages();
    let (_, page) = pages.into_iter().find(|(name, _)| *name == "config.md").unwrap();
    let numbered =
        |line: &str| line.split_once(". ").filter(|(number, _)| number.parse::<u8>().is_ok()).is_some();
    let listed: Vec<&str> = page.lines().filter(|line| numbered(line)).collect();
    assert_eq!(listed.len(), 6, "{listed:?}");
    let folder = tempfile::tempdir().unwrap();
    let (home, project) = (folder.path().join("home"), folder.path().join("fusee.toml"));
    let user = home.join(".config/fusee/config.toml");
    fs::create_dir_all(user.parent().unwrap()).unwrap();
    let mut variables = vec![("HOME", home.to_str().unwrap())];
    let (mut agent, mut flags) = (None, Vec::new());
    // Each layer is added to those listed before it, and its value must hold.
    for (index, line) in listed.into_iter().enumerate() {
        let turns = index + 1;
        let setting = format!("max_turns = {turns}\n");
        match line {
            _ if line.contains("built-in") => {}
            _ if line.contains("config.toml") => fs::write(&user, setting).unwrap(),
            _ if line.contains("fusee.toml") => fs::write(&project, setting).unwrap(),
            _ if line.contains("--agent") => {
                fs::write(folder.path().join("agent.toml"), setting).unwrap();
                agent = Some(Path::new("agent.toml"));
            }
            _ if line.contains("FUSEE_*") => variables.push(("FUSEE_MAX_TURNS", "5")),
            _ if line.contains("flags") => flags.push(("max_turns", Value::Whole(6))),
            _ => panic!("an unknown layer: {line}"),
        }
        let environment = Environment::from_variables(&variables, folder.path());
        let config = Config::gather_for(Some(&project), agent, &environment, flags.clone()).unwrap();
        let expected = if index == 0 { Limits::default().max_turns.to_string() } else { turns.to_string() };
        assert_eq!(shown(&config, "max_turns"), expected, "{line}");
        assert_eq!(config.layer("max_turns"), Layer::ALL[index], "{line}");
    }
}

#[test]
fn the_built_in_values_are_those_of_the_libraries() {
    let config = Place::new("", "", &[]).gather(Vec::new()).unwrap();
    assert_eq!(config.limits(), Limits::default());
    assert_eq!(config.options(), RequestOptions::default());
    assert_eq!(config.approve(), ApprovalMode::default());
    assert_eq!(config.sandbox(), SandboxMode::default());
    assert_eq!(config.journal().durability, JournalOptions::default().durability);
    assert_eq!(config.journal().max_bytes, JournalOptions::default().max_bytes);
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
        (2, 3, 0.5, 4.0, Some(5))
    );
    assert_eq!((limits.retry_policy.max_retries, limits.retry_policy.backoff_ms), (6, 7));
    let options = config.options();
    assert_eq!(
        (options.temperature, options.top_p, options.max_output_tokens),
        (Some(0.8), Some(0.9), Some(10))
    );
    assert_eq!(options.reasoning_effort.as_deref(), Some("low"));
    assert_eq!((config.approve(), config.sandbox()), (ApprovalMode::Never, SandboxMode::Off));
    assert_eq!((config.journal().durability, config.journal().max_bytes), (Durability::Power, 11 << 20));
}

#[test]
fn the_names_of_the_specification_are_understood() {
    let project = "maxTurns = 7\nmaxTokens = 8\ncompactionThreshold = 0.6\ntimeout = 1500\n\
                   [retryPolicy]\nmaxRetries = 9\nbackoffMs = 10\n";
    let limits = Place::new("", project, &[]).gather(Vec::new()).unwrap().limits();
    assert_eq!((limits.max_turns, limits.max_tokens, limits.compaction_threshold), (7, 8, 0.6));
    assert_eq!(limits.timeout_s, 1.5, "the spec's `timeout` is in milliseconds");
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
    let environment = Environment::from_variables(&[("HOME", home.to_str().unwrap())], place.folder.path());
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
    let environment = Environment::from_variables(&[("HOME", "/home/me")], "/");
    let confine = place.gather(Vec::new()).unwrap().sandbox_options(&environment);
    let limits = ResourceLimits { cpu_s: 8, memory_bytes: 64 << 20, processes: 9, file_bytes: 7 << 20 };
    let (read, write) = (vec!["/opt/x".into()], vec!["/home/me/y".into()]);
    assert_eq!(
        confine,
        SandboxOptions { network: Network::Machine, read, write, limits, ..SandboxOptions::default() }
    );
}

#[test]
fn a_password_in_a_url_is_refused_because_urls_are_written_down() {
    let problems =
        Place::new("base_url = \"http://me:secret@host/v1\"\n", "", &[]).gather(Vec::new()).unwrap_err();
    assert!(problems.contains("would be stored in the journal"), "{problems}");
}

#[test]
fn a_variable_with_a_slip_is_noticed_and_others_are_left_alone() {
    let config =
        Place::new("", "", &[("FUSEE_MAX_TURN", "3"), ("FUSEE_KILL_AT", "3")]).gather(Vec::new()).unwrap();
    let warnings = config.warnings(Colour::Never).unwrap();
    assert!(warnings.contains("unknown variable FUSEE_MAX_TURN"), "{warnings}");
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

#[test]
fn flows_have_the_defaults_of_the_library() {
    use fusee::engine::agent::flow::{FlowMode, FlowSettings};
    let config = Place::new("", "", &[]).gather(Vec::new()).unwrap();
    let library = FlowSettings::default();
    let expected = FlowSettings { mode: FlowMode::Auto, sample_temperature: Some(0.7), ..library };
    assert_eq!(config.flow().unwrap(), expected);
}

/// Gathers with an agent file of this name and text.
fn with_agent(place: &Place, name: &str, text: &str, flags: Vec<FlagValue>) -> Result<Config, String> {
    let home = place.folder.path().join("home");
    let mut variables = vec![("HOME", home.to_str().unwrap())];
    variables.extend_from_slice(&place.variables);
    let environment = Environment::from_variables(&variables, place.folder.path());
    fs::write(place.folder.path().join(name), text).unwrap();
    let here = place.folder.path().display().to_string();
    let project = place.folder.path().join("fusee.toml");
    Config::gather_for(Some(&project), Some(std::path::Path::new(name)), &environment, flags)
        .map_err(|failure| failure.message.replace(&here, "HERE"))
}

/// Every key of the agent specification, each with a non-default value.
const EVERY_KNOB: &str = r#"{
  "name": "local", "description": "all knobs", "model": "ollama:x", "base_url": "http://127.0.0.1:1/v1",
  "task_flow_mode": "staged", "task_output_mode": "runtime", "benchmark_output_mode": "model",
  "task_plan_mode": "first", "task_skip_readonly": true, "task_replan_max": 3, "task_branching": false,
  "flow_stage_retries": 2, "flow_stage_required": false, "flow_history_mode": "tail",
  "flow_history_max_messages": 20, "flow_history_keep_first": false, "flow_history_strip_thinking": true,
  "flow_history_tool_truncate_chars": 300, "flow_history_tool_truncate_keep_last": 4, "flow_context_window": -1,
  "flow_retry_hints": false, "history_strip_thinking": true, "history_tool_truncate_chars": 500,
  "history_tool_truncate_keep_last": 5, "verify": "make test", "before": {"read": ["@tests"], "run": "true"},
  "after": {"run": "false"}, "edit_format": "whole", "tools": ["read_file"],
  "phase_log": "both", "phase_prompt_at": "tail", "max_turns": 7, "maxTokens": 8000,
  "phase_control": {
    "mode": "hybrid", "states": ["look", "think", "do"], "default": "look",
    "rules": {"min_files_read_for_plan": 2, "auto_plan_after_read": false, "write_to_implement": false,
              "targets": {"plan": "think"}},
    "probe": {"temperature": 0.5, "max_tokens": 32, "system_prompt": "s", "user_prompt": "u"},
    "prompts": {"look": "Look.", "do": "Do."}
  },
  "flow": [
    {"id": "context", "label": "CONTEXT", "prompt": "Gather.", "done_hint": "h", "tools_allow": ["read_file"],
     "tools_block": ["shell"], "tools_mode": "hide", "require_files_read": 1, "require_non_flow_tool": 2,
     "require_code_change": true, "allow_missing_done": true, "context_window": 3, "history_mode": "tail",
     "history_max_messages": 9, "history_keep_first": false, "history_strip_thinking": true,
     "history_tool_truncate_chars": 10, "history_tool_truncate_keep_last": 1, "max_turns": 4, "model": "m",
     "edit_format": "blocks", "before": {"read": ["*.md"], "run": "ls"}, "after": {"run": "ls"}, "verify": "true"},
    {"id": "implement", "prompt": "Do."}
  ]
}"#;

#[test]
fn every_knob_of_an_agent_file_reaches_what_it_is_for() {
    let config = with_agent(&Place::new("", "", &[]), "agent.json", EVERY_KNOB, Vec::new()).unwrap();
    let flow = config.flow().unwrap();
    insta::assert_json_snapshot!(flow);
    assert_eq!((config.limits().max_turns, config.limits().max_tokens), (7, 8000));
    assert_eq!(shown(&config, "flow"), "context, implement");
    assert_eq!(config.text("base_url"), Some("http://127.0.0.1:1/v1"));
    assert_eq!(config.text("benchmark_output_mode"), Some("model"));
}

#[test]
fn every_knob_has_a_variable() {
    let variables = [
        ("FUSEE_TASK_FLOW_MODE", "staged3"),
        ("FUSEE_FLOW_CONTEXT_WINDOW", "-1"),
        ("FUSEE_TASK_SKIP_READONLY", "1"),
        ("FUSEE_TOOLS", "read_file, shell"),
        ("FUSEE_PHASE_CONTROL_PROMPTS", "{\"plan\": \"Plan.\"}"),
        ("FUSEE_PHASE_CONTROL_MODE", "rules"),
    ];
    let flow = Place::new("", "", &variables).gather(Vec::new()).unwrap().flow().unwrap();
    assert_eq!(flow.mode, fusee::engine::agent::flow::FlowMode::Staged3);
    assert_eq!((flow.context_window, flow.skip_readonly), (-1, true));
    assert_eq!(flow.tools, ["read_file", "shell"]);
    assert_eq!(flow.phase_control.prompts["plan"], "Plan.");
    let stages = [("FUSEE_FLOW", r#"[{"id": "a", "prompt": "x"}]"#)];
    assert_eq!(Place::new("", "", &stages).gather(Vec::new()).unwrap().flow().unwrap().stages[0].id, "a");
}

#[test]
fn what_is_wrong_in_a_flow_is_told_all_at_once_with_near_names() {
    let agent = "task_flow_mode = \"stagd\"\nflow_stage_retrys = 1\nflow_stage_required = \"yes\"\n\
                 [[flow]]\nid = \"a\"\nprompts = \"x\"\n[[flow]]\nid = \"a\"\nbefore = { reed = [] }\n[[flow]]\nprompt = \"y\"\n\
                 [phase_control]\nmode = \"rule\"\n";
    let complaint = with_agent(&Place::new("", "", &[]), "agent.toml", agent, Vec::new()).unwrap_err();
    assert_snapshot!(complaint);
}

#[test]
fn a_name_that_nobody_knows_is_refused_where_it_is_used() {
    let place = Place::new("", "", &[]);
    let refused = |text: &str| {
        let config = with_agent(&place, "agent.toml", text, Vec::new()).unwrap();
        let failure = config.check_tools().and_then(|()| config.flow().map(|_| ())).unwrap_err();
        format!("{}\n  {}", failure.message, failure.help.unwrap_or_default())
    };
    let here = place.folder.path().display().to_string();
    let all = [
        refused("tools = [\"read_fil\"]\n"),
        refused("[[flow]]\nid = \"a\"\ntools_allow = [\"read_file\", \"shel\"]\n"),
        refused("[phase_control]\nstates = [\"look\", \"do\"]\ndefault = \"lok\"\n"),
        refused("[phase_control.prompts]\nplanning = \"x\"\n"),
    ];
    assert_snapshot!(all.join("\n").replace(&here, "HERE"));
}

#[test]
fn the_last_word_on_the_shape_of_the_work_counts() {
    use fusee::engine::agent::flow::FlowMode::*;
    let stages = "[[flow]]\nid = \"a\"\n";
    let branching = "task_branching = true\n";
    let flag = |mode: &str| vec![("task_flow_mode", Value::Text(mode.to_owned()))];
    let cases = [
        (stages, Vec::new(), Auto, 1),
        (stages, flag("flat"), Flat, 0),
        (stages, flag("staged"), Staged, 0),
        (branching, Vec::new(), Branched, 0),
        (branching, flag("staged"), Staged, 0),
        ("task_flow_mode = \"staged3\"\n", Vec::new(), Staged3, 0),
        ("task_flow_mode = \"flat\"\ntask_branching = true\n", Vec::new(), Branched, 0),
        ("task_flow_mode = \"direct\"\ntask_branching = false\n", Vec::new(), Direct, 0),
    ];
    for (project, flags, mode, count) in cases {
        let flow = Place::new("", project, &[]).gather(flags.clone()).unwrap().flow().unwrap();
        assert_eq!((flow.mode, flow.stages.len()), (mode, count), "{project} {flags:?}");
    }
}

#[test]
fn an_agent_file_that_is_not_there_is_named() {
    let place = Place::new("", "", &[]);
    let environment = Environment::from_variables(&[], place.folder.path());
    let failure = Config::gather_for(None, Some(std::path::Path::new("no.toml")), &environment, Vec::new());
    assert!(failure.unwrap_err().message.contains("not found"), "it is not said");
}
