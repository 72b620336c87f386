//! The choice of the flow and of the verification.

use super::*;

/// A workspace with these files.
fn workspace(files: &[(&str, &str)]) -> (tempfile::TempDir, Workspace) {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let workspace = Workspace::open(directory.path()).unwrap();
    (directory, workspace)
}

fn chosen(request: &str, small: bool, files: &[(&str, &str)]) -> FlowSettings {
    let (_directory, workspace) = workspace(files);
    let mut flow = FlowSettings { mode: FlowMode::Auto, ..FlowSettings::default() };
    resolve_auto(&mut flow, RunTraits { request, small, needs_session: false }, &workspace);
    flow
}

#[test]
fn the_flow_follows_from_model_and_request() {
    let leap: &[(&str, &str)] = &[("leap.py", "def leap(y): pass\n"), ("test_leap.py", "import unittest\n")];
    let many: Vec<(String, &str)> = (0..20).map(|n| (format!("part{n}.py"), "x = 1\n")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    type Row<'a> = (&'a str, bool, &'a [(&'a str, &'a str)], FlowMode);
    let rows: &[Row<'_>] = &[
        ("Fix leap.py", false, leap, FlowMode::Flat),
        ("Fix leap.py", true, leap, FlowMode::Direct),
        ("Fix the failing test", true, leap, FlowMode::Direct),
        ("What does leap.py do?", true, leap, FlowMode::Flat),
        ("Explain leap.py", true, leap, FlowMode::Flat),
        ("Review leap.py", true, leap, FlowMode::Flat),
        ("Fix the failing test", true, &many, FlowMode::Direct),
        ("Run the tests", true, leap, FlowMode::Flat),
        ("Please run the tests", true, leap, FlowMode::Flat),
        ("Fix the rounding in part7", true, &many, FlowMode::Direct),
        ("Can you fix the failing test?", true, leap, FlowMode::Direct),
        ("Could you please explain leap.py?", true, leap, FlowMode::Flat),
        ("Why does test_leap fail? Change nothing.", true, leap, FlowMode::Flat),
        ("Explain leap.py. Write two sentences.", true, leap, FlowMode::Flat),
        (
            "Check whether a year is a leap year.\n\nChange leap.py so that the tests pass.",
            true,
            leap,
            FlowMode::Direct,
        ),
        ("How many days has a year? Implement the function leap.", true, leap, FlowMode::Direct),
    ];
    for (request, small, files, flow) in rows {
        assert_eq!(chosen(request, *small, files).mode, *flow, "{request}, small: {small}");
    }
}

#[test]
fn the_reason_names_the_files() {
    let flow = chosen("Fix leap.py", true, &[("leap.py", ""), ("test_leap.py", "import unittest")]);
    let reason = flow.chosen.unwrap().reason;
    assert_eq!(reason, "the model is small, and the request is about leap.py, test_leap.py");
    assert_eq!(chosen("Fix leap.py", false, &[("leap.py", "")]).chosen, None);
}

#[test]
fn direct_is_verified_by_the_projects_own_tests() {
    let files: &[(&str, &str)] =
        &[("leap.py", ""), ("test_leap.py", "import unittest"), ("Makefile", "test:\n")];
    let flow = chosen("Fix leap.py", true, files);
    assert_eq!(flow.verify.as_deref(), Some("python3 -m unittest test_leap"));
    assert_eq!(flow.verify_alternatives, ["python3 -m pytest -q test_leap.py", "make test"]);
    assert_eq!(chosen("Fix leap.py", false, files).verify, None);
}

#[test]
fn the_users_command_is_kept_and_off_means_none() {
    let (_directory, workspace) = workspace(&[("leap.py", ""), ("Makefile", "test:\n")]);
    for (said, command) in
        [("make check", Some("make check")), (VERIFY_OFF, None), (VERIFY_AUTO, Some("make test"))]
    {
        let mut flow =
            FlowSettings { mode: FlowMode::Direct, verify: Some(said.to_owned()), ..FlowSettings::default() };
        resolve_auto(
            &mut flow,
            RunTraits { request: "Fix leap.py", small: true, needs_session: false },
            &workspace,
        );
        assert_eq!(flow.verify.as_deref(), command, "{said}");
    }
}

#[test]
fn a_command_that_ran_no_test_is_unusable() {
    assert!(is_unusable("sh: 1: pytest: not found\n[exit code 127]"));
    assert!(is_unusable("/usr/bin/python3: No module named pytest\n[exit code 1]"));
    assert!(!is_unusable(
        "?   \tdemo/cmd\t[no test files]\n--- FAIL: TestLeap (0.00s)\nFAIL\nFAIL\tdemo\t0.1s\n"
    ));
    assert!(!is_unusable("1 failed, 2 passed in 0.1s\n[exit code 1]"));
}

#[test]
fn only_some_requests_are_for_tests() {
    assert!(asks_for_tests("Add a test for leap years") && asks_for_tests("rewrite test_leap.py"));
    assert!(!asks_for_tests("fix the failing test") && !asks_for_tests("Change leap.py"));
    assert!(!asks_for_tests(
        "Change leap.py so that the tests in test_leap.py pass. Do not change the tests."
    ));
}
