//! Suites on disk: what is read, and where mistakes are reported.

use std::fs;

use insta::assert_snapshot;

use super::*;
use crate::case::{CaseFile, Reference, Verdict};
use crate::machine::HostMachine;

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn problems(suite: &Suite, root: &Path) -> String {
    let lines: Vec<String> = suite
        .problems
        .iter()
        .map(|problem| problem.to_string().replace(&format!("{}/", root.display()), ""))
        .collect();
    lines.join("\n")
}

const CONFIG: &str =
    r#"{"files": {"solution": ["a.py"], "test": ["a_test.py"], "example": [".meta/example.py"]}}"#;

#[test]
fn the_demo_suite_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let demo = Suite::write_demo(folder.path()).unwrap();
    let suite = Suite::read(&demo, &TestCommands::new()).unwrap();
    assert!(suite.problems.is_empty(), "{:?}", suite.problems);
    assert_eq!(suite.cases.len(), 10);
    for case in &suite.cases {
        assert_eq!(case.language.as_deref(), Some("python"));
        assert!(
            matches!(&case.reference, Some(Reference::Files(files)) if files.len() == 1),
            "{}",
            case.name
        );
        assert!(
            case.files.iter().all(|file| !file.path.starts_with(".meta") && !file.path.starts_with(".docs"))
        );
    }
}

#[test]
fn mistakes_in_exercises_are_reported_and_the_rest_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(
        root,
        &[
            ("python/exercises/practice/good/.meta/config.json", CONFIG),
            ("python/exercises/practice/good/.meta/example.py", "x = 1\n"),
            ("python/exercises/practice/good/.docs/instructions.md", "# Good\n"),
            ("python/exercises/practice/good/.approaches/hint.md", "secret"),
            ("python/exercises/practice/good/a.py", ""),
            ("python/exercises/practice/good/a_test.py", "import unittest\n"),
            ("python/exercises/practice/no-config/.meta/example.py", ""),
            ("python/exercises/practice/bad-json/.meta/config.json", "{\n  \"files\": {,}\n}"),
            ("python/exercises/practice/no-test/.meta/config.json", CONFIG),
            ("python/exercises/practice/no-test/.docs/instructions.md", "# No test\n"),
            ("python/exercises/practice/no-test/.meta/example.py", ""),
            ("python/exercises/practice/no-test/a.py", ""),
            (
                "python/exercises/practice/escape/.meta/config.json",
                r#"{"files": {"solution": ["../a.py"], "test": ["t.py"]}}"#,
            ),
        ],
    );
    let suite = Suite::read(root, &TestCommands::new()).unwrap();
    assert_eq!(suite.cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>(), ["good"]);
    let case = &suite.cases[0];
    assert_eq!(
        case.files.iter().map(|file| file.path.to_str().unwrap()).collect::<Vec<_>>(),
        ["a.py", "a_test.py"]
    );
    assert_eq!(case.test.command, "python3 -m unittest -q a_test.py");
    assert_snapshot!(problems(&suite, root), @r"
    python/exercises/practice/bad-json/.meta/config.json:2: key must be a string at line 2 column 13
    python/exercises/practice/escape/.meta/config.json: `../a.py` is not a path inside the exercise
    python/exercises/practice/no-config/.meta/config.json: No such file or directory (os error 2)
    python/exercises/practice/no-test/a_test.py: the file does not exist
    ");
}

#[test]
fn test_commands_can_be_configured() {
    let folder = tempfile::tempdir().unwrap();
    let demo = Suite::write_demo(folder.path()).unwrap();
    let commands = TestCommands::from([("python".to_owned(), "pypy3 -m unittest".to_owned())]);
    let suite = Suite::read(&demo, &commands).unwrap();
    assert_eq!(
        (suite.cases[0].test.command.as_str(), suite.cases[0].programs.len()),
        ("pypy3 -m unittest", 0)
    );
}

#[test]
fn harbor_tasks_run_in_a_directory_if_their_image_only_copies() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let task = "schema_version = \"1.4\"\n[task]\nname = \"us/good\"\nkeywords = [\"text\"]\n[verifier]\ntimeout_sec = 30\n[agent]\ntimeout_sec = 90.5\n";
    let files = |name: &str, task: &str, docker: &str| {
        write(
            root,
            &[
                (&format!("{name}/task.toml"), task),
                (&format!("{name}/instruction.md"), "Do it.\n"),
                (&format!("{name}/environment/Dockerfile"), docker),
                (&format!("{name}/environment/data.txt"), "data\n"),
                (&format!("{name}/environment/src/main.py"), "pass\n"),
                (&format!("{name}/tests/test.sh"), "exit 0\n"),
            ],
        );
    };
    files(
        "good",
        task,
        "FROM python:3.12\nWORKDIR /app\nENV MODE=test\nCOPY data.txt ./\nCOPY src /app/src\n",
    );
    files("needs-run", task, "FROM debian\nRUN apt-get install -y \\\n  curl\n");
    files("needs-image", &format!("{task}[environment]\ndocker_image = \"us/img\"\n"), "FROM debian\n");
    files("gpu", &format!("{task}[environment]\ngpus = 1\n"), "FROM debian\n");
    files("broken", "schema_version = \"1.4\"\n[verifier]\ntimeout_sec = \"soon\"\n", "FROM debian\n");
    files("future", "schema_version = \"2.0\"\n", "FROM debian\n");
    fs::remove_file(root.join("gpu/instruction.md")).unwrap();
    let suite = Suite::read(root, &TestCommands::new()).unwrap();
    assert_snapshot!(problems(&suite, root), @r#"
    broken/task.toml:3: invalid type: string "soon", expected f64
    future/task.toml: schema_version `2.0` is not supported; expected 1.x
    gpu/instruction.md: No such file or directory (os error 2)
    "#);
    let machine = HostMachine::new(vec!["/bin".into(), "/usr/bin".into()], true);
    let reasons: Vec<(&str, Option<String>)> =
        suite.cases.iter().map(|case| (case.name.as_str(), case.skip_reason(&machine))).collect();
    assert_eq!(
        reasons,
        [
            ("good", None),
            ("needs-image", Some("needs the container image `us/img`".to_owned())),
            (
                "needs-run",
                Some("needs a container: its Dockerfile has `RUN apt-get install -y curl`".to_owned())
            ),
        ]
    );
    let good = &suite.cases[0];
    assert_eq!(good.mounted_at.as_deref(), Some(Path::new("/app")));
    assert_eq!((good.test.timeout_s, good.agent_timeout_s), (30, Some(91)));
    assert_eq!(good.test.command, "export MODE=test\nbash /tests/test.sh");
    assert_eq!(good.test.verdict, Verdict::RewardFile { tests: root.join("good/tests") });
    let file = |path: &str, source: &str| CaseFile {
        path: path.into(),
        source: root.join("good/environment").join(source),
    };
    assert_eq!(good.files, [file("data.txt", "data.txt"), file("src/main.py", "src/main.py")]);
}

#[test]
fn a_table_of_cases() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(
        root,
        &[
            (
                "suite.toml",
                "test = \"sh check.sh\"\ntimeout_s = 5\n\n[[case]]\nname = \"one\"\nprompt = \"Write x.\"\nfiles = \
                 \"one\"\ntests = [\"check.sh\"]\nreference = \"ref\"\nkeywords = [\"easy\"]\n\n[[case]]\nname = \
                 \"no-prompt\"\n\n[[case]]\nname = \"typo\"\nprompt = \"p\"\nfile = \"one\"\n\n[[case]]\nname = \
                 \"gone\"\nprompt = \"p\"\nfiles = \"nowhere\"\n",
            ),
            ("one/check.sh", "grep -q x out\n"),
            ("ref/out", "x\n"),
        ],
    );
    let suite = Suite::read(root, &TestCommands::new()).unwrap();
    assert_snapshot!(problems(&suite, root), @r"
    suite.toml:12: needs either `prompt` or `prompt_file`
    suite.toml:15: unknown field `file`, expected one of `name`, `prompt`, `prompt_file`, `files`, `tests`, `solution`, `test`, `timeout_s`, `agent_timeout_s`, `reference`, `language`, `keywords`, `programs`
    suite.toml:20: files nowhere: No such file or directory (os error 2)
    ");
    let case = &suite.cases[0];
    assert_eq!(
        (case.name.as_str(), case.test.command.as_str(), case.test.timeout_s),
        ("one", "sh check.sh", 5)
    );
    assert_eq!(case.request(), "Write x.");
    assert_eq!(suite.problems[0].case, "no-prompt");
}

#[test]
fn the_same_exercise_in_two_languages_has_two_names() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (language, extension) in [("python", "py"), ("go", "go")] {
        let base = format!("{language}/exercises/practice/leap");
        let config = format!(
            r#"{{"files": {{"solution": ["leap.{extension}"], "test": ["leap_test.{extension}"]}}}}"#
        );
        write(
            root,
            &[
                (&format!("{base}/.meta/config.json"), &config),
                (&format!("{base}/.docs/instructions.md"), "# Leap\n"),
                (&format!("{base}/leap.{extension}"), ""),
                (&format!("{base}/leap_test.{extension}"), ""),
            ],
        );
    }
    let suite = Suite::read(root, &TestCommands::new()).unwrap();
    assert_eq!(
        suite.cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>(),
        ["go.leap", "python.leap"]
    );
}

#[test]
fn an_empty_folder_is_no_suite() {
    let folder = tempfile::tempdir().unwrap();
    let error = Suite::read(folder.path(), &TestCommands::new()).unwrap_err();
    assert!(error.message.starts_with("no case found"), "{error}");
    assert!(Suite::read(&folder.path().join("none"), &TestCommands::new()).is_err());
}

#[test]
fn selection_filters_then_orders_then_cuts() {
    let folder = tempfile::tempdir().unwrap();
    let demo = Suite::write_demo(folder.path()).unwrap();
    let suite = Suite::read(&demo, &TestCommands::new()).unwrap();
    let names = |selection: Selection| -> Vec<String> {
        selection.apply(&suite).into_iter().map(|case| case.name).collect()
    };
    let select = Selection::default;
    assert_eq!(names(select()).len(), 10);
    assert_eq!(
        names(Selection { keywords: vec!["times".into(), "wheel".into()], ..select() }),
        ["bus-times", "word-wheel"]
    );
    assert!(names(Selection { languages: vec!["go".into()], ..select() }).is_empty());
    assert_eq!(names(Selection { slice: "1:3".parse().ok(), ..select() }), ["build-order", "bus-times"]);
    assert_eq!(names(Selection { slice: "8:".parse().ok(), limit: Some(1), ..select() }), ["text-columns"]);
    let shuffled = names(Selection { shuffle: Some(7), ..select() });
    assert_eq!(shuffled, names(Selection { shuffle: Some(7), ..select() }));
    assert_ne!(shuffled, names(select()));
    assert!(
        "3:1".parse::<Slice>().is_err() && "x".parse::<Slice>().is_err() && "1".parse::<Slice>().is_err()
    );
}
