//! The project's own tests, found and run for a small model: one small project per runner whose toolchain is here.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use fusee_testkit::project::Project;
use fusee_testkit::server::{Message, Server};

use crate::small_models::of_type;
use crate::support::fusee;

struct Runner {
    /// A command that succeeds if the toolchain is here.
    needs: &'static [&'static str],
    files: &'static [(&'static str, &'static str)],
    /// The file that is wrong, and what it should be.
    fixed: (&'static str, &'static str),
    /// The command that is found.
    command: &'static str,
    /// Tests that pass at the end, if the runner counts them.
    passed: Option<u32>,
}

const UNITTEST: Runner = Runner {
    needs: &["python3", "--version"],
    files: &[
        ("leap.py", "def one():\n    return 0\n"),
        (
            "test_leap.py",
            "import unittest\nimport leap\n\n\nclass T(unittest.TestCase):\n    def test_one(self):\n        \
             self.assertEqual(leap.one(), 1)\n",
        ),
    ],
    fixed: ("leap.py", "def one():\n    return 1\n"),
    command: "python3 -m unittest test_leap",
    passed: Some(1),
};

const PYTEST: Runner = Runner {
    needs: &["python3", "-c", "import pytest"],
    files: &[
        ("leap.py", "def one():\n    return 0\n"),
        ("test_leap.py", "import leap\n\n\ndef test_one():\n    assert leap.one() == 1\n"),
    ],
    fixed: ("leap.py", "def one():\n    return 1\n"),
    command: "python3 -m pytest -q test_leap.py",
    passed: Some(1),
};

const CARGO: Runner = Runner {
    needs: &["cargo", "--version"],
    files: &[
        (
            "Cargo.toml",
            "[package]\nname = \"leap\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
        ),
        ("src/lib.rs", "pub fn one() -> u32 {\n    0\n}\n"),
        ("tests/lib.rs", "#[test]\nfn one_is_one() {\n    assert_eq!(leap::one(), 1);\n}\n"),
    ],
    fixed: ("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n"),
    command: "cargo test --test lib",
    passed: Some(1),
};

const GO: Runner = Runner {
    needs: &["go", "version"],
    files: &[
        ("go.mod", "module leap\n\ngo 1.18\n"),
        ("leap.go", "package leap\n\nfunc One() int { return 0 }\n"),
        (
            "leap_test.go",
            "package leap\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Fatal(One())\n\t}\n}\n",
        ),
    ],
    fixed: ("leap.go", "package leap\n\nfunc One() int { return 1 }\n"),
    command: "go test -v ./",
    passed: Some(1),
};

const NODE: Runner = Runner {
    needs: &["node", "--version"],
    files: &[
        ("leap.js", "exports.one = () => 0;\n"),
        (
            "leap.test.js",
            "const test = require('node:test');\nconst assert = require('node:assert');\nconst { one } = require('./leap');\n\
             test('one', () => assert.strictEqual(one(), 1));\n",
        ),
    ],
    fixed: ("leap.js", "exports.one = () => 1;\n"),
    command: "node --test leap.test.js",
    passed: Some(1),
};

const NPM: Runner = Runner {
    needs: &["npm", "--version"],
    files: &[
        ("package.json", "{ \"name\": \"leap\", \"scripts\": { \"test\": \"node check.js\" } }\n"),
        ("leap.js", "exports.one = () => 0;\n"),
        ("check.js", "if (require('./leap').one() !== 1) process.exit(1);\n"),
    ],
    fixed: ("leap.js", "exports.one = () => 1;\n"),
    command: "npm test --silent",
    passed: None,
};

const MAKE: Runner = Runner {
    needs: &["make", "--version"],
    files: &[("Makefile", "test:\n\tsh leap.sh | grep -q '^1$$'\n"), ("leap.sh", "echo 0\n")],
    fixed: ("leap.sh", "echo 1\n"),
    command: "make test",
    passed: None,
};

fn is_here(command: &[&str]) -> bool {
    let mut command = {
        let mut started = Command::new(command[0]);
        started.args(&command[1..]);
        started
    };
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn toolchain(variable: &str, below_home: &str) -> OsString {
    std::env::var_os(variable)
        .unwrap_or_else(|| std::env::home_dir().unwrap_or_default().join(below_home).into_os_string())
}

fn check(runner: &Runner) {
    if !is_here(runner.needs) {
        eprintln!("not tested: `{}` is not here", runner.needs.join(" "));
        return;
    }
    let project = runner.files.iter().fold(Project::new(), |project, (path, text)| project.with(path, text));
    let (path, text) = runner.fixed;
    let server = Server::start([Message::text(&format!("{path}\n```\n{text}```\n")).stream()]);
    let events = fusee(&project)
        .args(["run", &format!("Fix {path}"), "-m", "llama.cpp:qwen2.5-coder-1.5b", "--json"])
        .args(["--base-url", &server.base_url()])
        // The toolchain is in the home directory of whoever runs the tests.
        .env("RUSTUP_HOME", toolchain("RUSTUP_HOME", ".rustup"))
        .env("CARGO_HOME", toolchain("CARGO_HOME", ".cargo"))
        .run()
        .exits(0)
        .events();
    let report = of_type(&events, "task_report").into_iter().find(|report| report["task"] == "main").unwrap();
    assert_eq!(report["verify"]["command"], runner.command);
    assert_eq!(report["verify"]["passed"], true);
    let sample = of_type(&events, "sample")[0];
    assert_eq!(sample["verdict"], "passed");
    assert_eq!(sample["passed"].as_u64(), runner.passed.map(u64::from));
    // It was confirmed by running once before the change, and failed then.
    let baseline =
        of_type(&events, "tool_result").into_iter().find(|result| result["call_id"] == "baseline-1");
    assert_eq!(baseline.map(|result| &result["ok"]), Some(&serde_json::Value::Bool(false)));
}

#[test]
fn unittest_runs_on_a_real_project() {
    check(&UNITTEST);
}

#[test]
fn pytest_runs_on_a_real_project() {
    check(&PYTEST);
}

#[test]
fn cargo_runs_on_a_real_project() {
    check(&CARGO);
}

#[test]
fn go_runs_on_a_real_project() {
    check(&GO);
}

#[test]
fn nodes_own_runner_runs_on_a_real_project() {
    check(&NODE);
}

#[test]
fn npm_runs_on_a_real_project() {
    check(&NPM);
}

#[test]
fn make_runs_on_a_real_project() {
    check(&MAKE);
}
