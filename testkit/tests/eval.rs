//! Drives `eval` from outside: on the shipped exercises, on small ones written here, with a scripted model server
//! and with scripts in place of the fusee binary.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test panics on a fault and starts programs"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fusee_testkit::server::{Message, Script, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

const STUB: &str = "def double(n):\n    return n\n";
const SOLUTION: &str = "def double(n):\n    return 2 * n\n";
const TEST: &str = "import unittest\nfrom double import double\n\n\nclass DoubleTest(unittest.TestCase):\n    \
                    def test_double(self):\n        self.assertEqual(double(4), 8)\n";

/// A suite with one exercise, and a place for results.
struct Stage {
    folder: TempDir,
}

impl Stage {
    fn new() -> Self {
        let stage = Self { folder: tempfile::tempdir().unwrap() };
        let files =
            json!({"solution": ["double.py"], "test": ["double_test.py"], "example": [".meta/double.py"]});
        stage.write("suite/python/double/.meta/config.json", &json!({ "files": files }).to_string());
        stage.write("suite/python/double/.meta/double.py", SOLUTION);
        stage.write("suite/python/double/.docs/instructions.md", "# Double\n\nReturn twice the number.\n");
        stage.write("suite/python/double/double.py", STUB);
        stage.write("suite/python/double/double_test.py", TEST);
        fs::create_dir(stage.path("tmp")).unwrap();
        stage
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a Python program to be used as the fusee binary.
    fn program(&self, text: &str) {
        let version = "import sys\nif '--version' in sys.argv:\n    print('fusee 9.9')\n    sys.exit()\n";
        self.write("program", &format!("#!/usr/bin/env python3\n{version}{text}"));
        fs::set_permissions(self.path("program"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn eval(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_eval"))
            .args(args)
            .args(["--suite", self.path("suite").to_str().unwrap()])
            .env("TMPDIR", self.path("tmp"))
            .output()
            .unwrap()
    }

    fn check(&self) -> Output {
        self.eval(&["check", "--unconfined"])
    }

    /// Runs methods against a server.
    fn run(&self, base_url: &str, methods: &[&str]) -> Output {
        let (out, program) = (self.path("out"), self.path("program"));
        let fixed = ["run", "--unconfined", "--model", "m", "--base-url", base_url, "--peers", "none"];
        let paths = ["--out", out.to_str().unwrap(), "--fusee-binary", program.to_str().unwrap()];
        self.eval(&[&fixed, &paths[..], methods].concat())
    }

    fn result(&self, method: &str) -> Value {
        let text = fs::read_to_string(self.path(&format!("out/{method}/python.double.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

/// Text of a successful command.
fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Error text of a command.
fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("exercises")
}

#[test]
fn shipped_python_exercises_pass_with_their_reference_and_fail_without() {
    let temporary = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_eval"))
        .args(["check", "--unconfined", "--only", "python/", "--suite", shipped().to_str().unwrap()])
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    assert!(text.ends_with("16 exercises: every reference passes, every stub fails\n"), "{text}");
}

#[test]
fn shipped_exercises_are_split_into_halves_balanced_by_language_and_kind() {
    let split: Value =
        serde_json::from_str(&fs::read_to_string(shipped().join("split.json")).unwrap()).unwrap();
    let names = |part: &str| -> Vec<String> { serde_json::from_value(split[part].clone()).unwrap() };
    let kinds = |part: &str| {
        let mut kinds: Vec<String> = names(part)
            .iter()
            .map(|name| {
                let config = fs::read_to_string(shipped().join(name).join(".meta/config.json")).unwrap();
                let config: Value = serde_json::from_str(&config).unwrap();
                format!("{} {}", name.split('/').next().unwrap(), config["custom"]["kind"].as_str().unwrap())
            })
            .collect();
        kinds.sort();
        kinds
    };
    assert_eq!(kinds("tuning"), kinds("judging"));
    let mut split_names = [names("tuning"), names("judging")].concat();
    split_names.sort();
    let mut folders: Vec<String> = ["go", "javascript", "python", "rust"]
        .into_iter()
        .flat_map(|language| {
            let entries = fs::read_dir(shipped().join(language)).unwrap();
            entries.map(move |entry| format!("{language}/{}", entry.unwrap().file_name().to_str().unwrap()))
        })
        .collect();
    folders.sort();
    assert_eq!(split_names, folders);
}

#[test]
fn check_reports_a_stub_that_passes_and_a_reference_that_fails() {
    let stage = Stage::new();
    assert!(stdout(&stage.check()).contains("ok    python/double"));
    stage.write("suite/python/double/double.py", SOLUTION);
    let output = stage.check();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("WRONG python/double: the stub passes"));
    stage.write("suite/python/double/.meta/double.py", STUB);
    let output = stage.check();
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("WRONG python/double: the reference solution fails")
    );
    assert_eq!(stderr(&output), "eval: 1 exercises wrong, 0 not checked: python/double\n");
}

#[test]
fn check_reports_a_missing_toolchain_instead_of_skipping() {
    let stage = Stage::new();
    let output = Command::new(env!("CARGO_BIN_EXE_eval"))
        .args(["check", "--unconfined", "--suite", stage.path("suite").to_str().unwrap()])
        .env("TMPDIR", stage.path("tmp"))
        .env("PATH", stage.path("tmp"))
        .output()
        .unwrap();
    assert!(!output.status.success());
    let expected = "python3 is missing (Debian package python3): 1 exercises not checked\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn a_plain_request_is_judged_counted_and_not_repeated() {
    let stage = Stage::new();
    let reply = format!("double.py\n```python\n{SOLUTION}```\n");
    let server = Server::start(Script::new().then(Message::text(&reply).usage(100, 20).whole()));
    let text = stdout(&stage.run(&server.base_url(), &["--method", "plain"]));
    assert!(text.contains("| plain | 1 of 1 | python 1/1 | 1 | 100 | 0 % | 20 |"), "{text}");
    let result = stage.result("plain");
    assert_eq!((&result["passed"], &result["cause"]), (&json!(true), &Value::Null));

    let sent = server.requests()[0].arrived.json();
    let prompt = sent["messages"][0]["content"].as_str().unwrap();
    let shown = [
        STUB,
        TEST,
        "Return twice the number.",
        "Change double.py so that the tests in double_test.py pass.",
    ];
    for part in shown {
        assert!(prompt.contains(part), "{part} is missing in\n{prompt}");
    }
    assert!(!prompt.contains("2 * n"), "the reference solution is in the prompt:\n{prompt}");

    let again = stdout(&stage.run(&server.base_url(), &["--method", "plain"]));
    assert_eq!(again, text);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn results_of_another_model_or_limit_are_not_mixed() {
    let stage = Stage::new();
    stage.program("");
    let server = Server::start(Script::new());
    stdout(&stage.run(&server.base_url(), &["--fusee", "auto"]));
    let other = stage.run(&server.base_url(), &["--fusee", "auto", "--limit", "7"]);
    assert!(stderr(&other).contains("has results of another model or limit"), "{}", stderr(&other));
    let other = stage.run(&server.base_url(), &["--fusee", "auto=--flow flat"]);
    assert!(stderr(&other).contains("`auto` was measured as `fusee 9.9`"), "{}", stderr(&other));
}

#[test]
fn a_tool_is_judged_by_the_original_tests() {
    let stage = Stage::new();
    stage.program("open('double_test.py', 'w').write('')\n");
    let server = Server::start(Script::new());
    stdout(&stage.run(&server.base_url(), &["--fusee", "auto"]));
    assert_eq!(stage.result("auto")["passed"], json!(false));
}

#[test]
fn fusee_gets_its_flags_and_its_streams_are_counted() {
    let stage = Stage::new();
    stage.program(
        "import json, os, urllib.request\n\
         assert sorted(os.listdir()) == ['double.py', 'double_test.py']\n\
         assert os.environ['FUSEE_TEMPERATURE'] == '0'\n\
         flags = dict(zip(sys.argv[3::2], sys.argv[4::2]))\n\
         assert flags['-m'] == 'llama.cpp:m' and flags['--flow'] == 'direct', flags\n\
         assert flags['--verify'] == 'python3 -m unittest -q double_test.py', flags\n\
         body = json.dumps({'stream': True, 'messages': []}).encode()\n\
         for _ in range(2):\n    \
             urllib.request.urlopen(flags['--base-url'] + '/chat/completions', body).read()\n\
         open('double.py', 'w').write('def double(n):\\n    return n + n\\n')\n",
    );
    let message = Message::text("some words").usage(50, 7);
    let script = Script::new().then(message.clone().stream()).then(message.stream());
    let server = Server::start(script);
    let method = "direct=FUSEE_TEMPERATURE=0 --flow direct --verify {test}";
    let output = stage.run(&server.base_url(), &["--fusee", method]);
    let log = fs::read_to_string(stage.path("out/direct/python.double.log")).unwrap_or_default();
    let text = stdout(&output);
    assert!(text.contains("| direct | 1 of 1 | python 1/1 | 2 | 100 | 0 % | 14 |"), "{text}\n{log}");
    assert!(text.contains("direct: fusee 9.9 FUSEE_TEMPERATURE=0 --flow direct --verify {test}"), "{text}");
}

#[test]
fn a_tool_is_killed_at_the_limit_and_judged_all_the_same() {
    let stage = Stage::new();
    stage.program(
        "import time\nopen('double.py', 'w').write('def double(n):\\n    return 2 * n\\n')\ntime.sleep(600)\n",
    );
    let server = Server::start(Script::new());
    stdout(&stage.run(&server.base_url(), &["--fusee", "slow", "--limit", "5"]));
    let result = stage.result("slow");
    assert_eq!((&result["passed"], &result["cause"]), (&json!(true), &json!("timeout")));
}

#[test]
fn two_methods_are_compared_in_pairs() {
    let stage = Stage::new();
    stage.program("open('double.py', 'w').write('def double(n):\\n    return 2 * n\\n')\n");
    let server = Server::start(Script::new().then(Message::text("I cannot.").whole()));
    let text = stdout(&stage.run(&server.base_url(), &["--fusee", "auto", "--method", "plain"]));
    assert!(text.contains("| auto | plain | 1 | 0 | +100 | +100 to +100 | 1.000 |"), "{text}");
}
