//! Which variables reach a command's environment.

use std::ffi::{OsStr, OsString};

use super::CommandEnvironment;

fn given(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
}

fn names(environment: &CommandEnvironment) -> Vec<&str> {
    environment.variables().map(|(name, _)| name.to_str().unwrap()).collect()
}

#[test]
fn only_listed_names_pass_and_some_are_always_set() {
    let environment = CommandEnvironment::allowed(given(&[
        ("PATH", "/bin"),
        ("HOME", "/home/u"),
        ("LC_ALL", "C"),
        ("TERM", "xterm"),
        ("OPENAI_API_KEY", "sk-1"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("LD_PRELOAD", "x"),
        ("SSH_AUTH_SOCK", "/run/x"),
    ]));
    assert_eq!(
        names(&environment),
        [
            "GIT_DISCOVERY_ACROSS_FILESYSTEM",
            "GIT_PAGER",
            "GIT_TERMINAL_PROMPT",
            "HOME",
            "LC_ALL",
            "NO_COLOR",
            "PAGER",
            "PATH",
            "PYTHONDONTWRITEBYTECODE",
            "TERM"
        ]
    );
    assert!(environment.variables().any(|pair| pair == (OsStr::new("TERM"), OsStr::new("dumb"))));
}

#[test]
fn names_can_be_added_but_never_secret_ones() {
    let variables = given(&[("MY_FLAG", "1"), ("GITHUB_TOKEN", "t"), ("LC_PASSWORD", "p"), ("MONKEY", "m")]);
    let also = ["MY_FLAG", "GITHUB_TOKEN", "MONKEY"].map(str::to_owned);
    let environment = CommandEnvironment::allowed_with(variables, &also);
    assert_eq!(
        names(&environment),
        [
            "GIT_DISCOVERY_ACROSS_FILESYSTEM",
            "GIT_PAGER",
            "GIT_TERMINAL_PROMPT",
            "MONKEY",
            "MY_FLAG",
            "NO_COLOR",
            "PAGER",
            "PATH",
            "PYTHONDONTWRITEBYTECODE",
            "TERM"
        ]
    );
}

#[test]
fn a_command_always_has_a_path() {
    let environment = CommandEnvironment::default();
    assert!(environment.variables().any(|(name, value)| name == "PATH" && !value.is_empty()));
}

#[test]
fn whether_python_keeps_compiled_code_is_the_users_word() {
    let value = |pairs: &[(&str, &str)]| {
        let environment = CommandEnvironment::allowed(given(pairs));
        environment.value("PYTHONDONTWRITEBYTECODE").map(OsStr::to_owned)
    };
    assert_eq!(value(&[]).as_deref(), Some(OsStr::new("1")));
    assert_eq!(value(&[("PYTHONDONTWRITEBYTECODE", "")]).as_deref(), Some(OsStr::new("")));
}
