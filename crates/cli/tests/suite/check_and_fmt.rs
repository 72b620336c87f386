//! `fusee check` and `fusee fmt`: diagnostics for a project's text files, and their formatting.

use fusee_testkit::project::Project;
use serde_json::{Value, json};

use crate::support::fusee;

fn checked(project: &Project, paths: &[&str], code: i32) -> Vec<Value> {
    let outcome = fusee(project).args(["check", "--format", "json"]).args(paths).run().exits(code);
    serde_json::from_str(&outcome.stdout).expect(&outcome.stdout)
}

#[test]
fn all_problems_of_a_workflow_are_told_at_once_in_the_shape_editors_read() {
    let project = Project::new()
        .with("flows/w.fusee", "(define retries 3)\n(read_file (pth \"a\"))\n(log-message retires)\n");
    let problems = checked(&project, &["flows/w.fusee"], 1);
    assert_eq!(
        json!(problems),
        json!([
            {
                "code": "missing-parameter", "severity": "error", "message": "missing parameter `path`",
                "file": "flows/w.fusee", "line": 2, "column": 2, "end_line": 2, "end_column": 11,
                "help": "add (path …)",
            },
            {
                "code": "unknown-parameter", "severity": "error", "message": "unknown parameter `pth`",
                "file": "flows/w.fusee", "line": 2, "column": 12, "end_line": 2, "end_column": 21,
                "help": "did you mean `path`?",
            },
            {
                "code": "unbound-name", "severity": "error", "message": "`retires` is not bound",
                "file": "flows/w.fusee", "line": 3, "column": 14, "end_line": 3, "end_column": 21,
                "help": "did you mean `retries`?",
            },
        ])
    );
    let output = fusee(&project).args(["check", "flows"]).run().exits(1).stdout;
    assert!(
        output.contains("(log-message retires)") && output.contains("^^^^^^^") && output.contains("3 errors"),
        "{output}"
    );
}

#[test]
fn a_directory_is_searched_for_what_can_be_checked() {
    let project = Project::new()
        .with("fusee.toml", "max_turnz = 3\n")
        .with("Cargo.toml", "nonsense")
        .with(".fusee/workflows/good.fusee", "(load \"../kit.fusee\")\n(double 4)\n")
        .with(".fusee/kit.fusee", "(defun double (n) (* 2 n))\n")
        .with("ignored/bad.fusee", "(((\n")
        .with(".gitignore", "ignored/\n");
    let problems = checked(&project, &["."], 1);
    let brief: Vec<_> = problems.iter().map(|p| (&p["file"], &p["line"], &p["severity"])).collect();
    assert_eq!(brief, [(&json!("fusee.toml"), &json!(1), &json!("error"))], "{problems:#?}");
    project.write("fusee.toml", "max_turns = 3\n");
    assert_eq!(checked(&project, &["."], 0), Vec::<Value>::new());
    let output = fusee(&project).args(["check", "."]).run().exits(0).stdout;
    assert_eq!(output, "3 files checked, no problems found\n");
}

#[test]
fn what_cannot_be_read_is_a_problem_like_any_other() {
    let project = Project::new().with("a.txt", "text").with("dark.fusee", "(a)\n");
    std::fs::write(project.dir().join("dark.fusee"), b"(a)\n\xff").unwrap();
    let problems = checked(&project, &["nowhere.fusee", "a.txt", "dark.fusee"], 1);
    let brief: Vec<_> = problems.iter().map(|p| (&p["file"], &p["code"], &p["line"], &p["column"])).collect();
    let at = |file: &str, code: &str| (json!(file), json!(code), json!(1), json!(1));
    let expected =
        [at("a.txt", "unknown-kind"), at("dark.fusee", "unreadable"), at("nowhere.fusee", "unreadable")];
    assert_eq!(brief, expected.each_ref().map(|(a, b, c, d)| (a, b, c, d)), "{problems:#?}");
    assert!(problems[1]["message"].as_str().unwrap().contains("line 2 is not UTF-8"), "{problems:#?}");
}

#[test]
fn hostile_workflows_get_a_verdict() {
    let project = Project::new();
    let deep = "(".repeat(200_000);
    let closed = format!("{}{}", "(list ".repeat(200_000), ")".repeat(200_000));
    let names: String = (0..10_000).map(|n| format!("(define name-{n} {n})\n")).collect();
    project.write("deep.fusee", &deep);
    project.write("closed.fusee", &closed);
    project.write("names.fusee", &names);
    project.write("string.fusee", &format!("\"{}\"", "x".repeat(100 << 20)));
    project.write("list.fusee", &format!("(length (list {}))", "1 ".repeat(10_000_000)));
    let codes = |file: &str, code: i32| -> Vec<String> {
        checked(&project, &[file], code).iter().map(|p| p["code"].as_str().unwrap().to_owned()).collect()
    };
    assert!(!codes("deep.fusee", 1).is_empty());
    assert_eq!(codes("names.fusee", 0), Vec::<String>::new());
    assert_eq!(codes("string.fusee", 1), ["unreadable"]);
    assert_eq!(codes("list.fusee", 1), ["unreadable"]);
    let nested = fusee(&project).args(["check", "closed.fusee"]).run();
    assert!(matches!(nested.code, Some(0 | 1)), "{nested:#?}");
}

#[test]
fn files_are_laid_out_in_place_and_keep_their_comments() {
    let ragged = "; what it does\n(define   x\n1) ; one\n\n\n\n(log-message x   \"y\")";
    let project = Project::new().with("w.fusee", ragged).with("broken.fusee", "(log-message \"x\"");
    let listed = fusee(&project).args(["fmt", "--check", "w.fusee"]).run().exits(1);
    assert_eq!((listed.stdout.as_str(), project.read("w.fusee").as_str()), ("w.fusee\n", ragged));
    fusee(&project).args(["fmt", "w.fusee"]).run().exits(0);
    let laid_out = "; what it does\n(define x 1) ; one\n\n(log-message x \"y\")\n";
    assert_eq!(project.read("w.fusee"), laid_out);
    assert_eq!(fusee(&project).args(["fmt", "--check", "w.fusee"]).run().exits(0).stdout, "");
    let piped = fusee(&project).args(["fmt", "-"]).stdin(ragged).run().exits(0);
    assert_eq!(piped.stdout, laid_out);
    let broken = fusee(&project).args(["fmt"]).run().exits(1);
    assert!(broken.stderr.contains("broken.fusee:1"), "{}", broken.stderr);
    assert_eq!(project.read("broken.fusee"), "(log-message \"x\"");
}

#[test]
fn agents_and_prompts_are_checked_with_places() {
    let project = Project::new()
        .with("agents/a.toml", "name = \"a\"\nmax_turnz = 3\n")
        .with("prompts/p.toml", "[[sections]]\nkey = \"one\"\ntitle = \"One\"\nbody = \"x\"\n\n[[sections]]\nkey = \"one\"\ntitle = \"Two\"\nbody = \"y\"\n")
        .with("prompts/k.toml", "[[sections]]\nkey = \"fine\"\ntitle = \"One\"\nbody = \"x\"\n\n[[sections.sections]]\nkey = \"Bad.Key!\"\ntitle = \"Two\"\nbody = \"y\"\n")
        .with("prompts/q.toml", "[[sections]]\nkei = \"one\"\n")
        .with("prompts/r.json", "{\"sections\": [\n  {\"key\": \"k\", \"title\": \"T\", \"boddy\": \"b\"}\n]}\n")
        .with("other/package.json", "{\"name\": \"not ours\"}");
    // Without a path the directory is checked.
    let problems = checked(&project, &[], 1);
    let brief: Vec<String> = problems
        .iter()
        .map(|p| {
            format!(
                "{}:{}:{} {}",
                p["file"].as_str().unwrap(),
                p["line"],
                p["column"],
                p["code"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        brief,
        [
            "agents/a.toml:2:1 unknown-key",
            "prompts/k.toml:7:8 invalid_key",
            "prompts/p.toml:7:8 duplicate_key",
            "prompts/q.toml:2:1 invalid-prompt-file",
            "prompts/r.json:2:36 invalid-prompt-file",
        ],
        "{problems:#?}"
    );
    assert_eq!(checked(&project, &["other/package.json"], 0), Vec::<Value>::new());
}

#[test]
fn a_tool_that_is_nearly_there_is_a_slip_of_the_template() {
    let task = |tools: &str| {
        format!(
            "<task name=\"t\" type=\"atomic\">\n  <description>d</description>\n  <instructions>i</instructions>\n  \
                 <tools allow=\"{tools}\"/>\n</task>\n"
        )
    };
    let project = Project::new().with(".fusee/templates/t.xml", &task("red_file, search_text"));
    let problems = checked(&project, &[".fusee"], 1);
    assert_eq!(problems[0]["line"], 4, "{problems:#?}");
    assert_eq!(
        problems[0]["message"],
        "`t` names unknown tools: `red_file` (did you mean `read_file`, `read_files` or `edit_file`?)"
    );
    project.write(".fusee/templates/t.xml", &task("read_file, tickets_open_one"));
    assert_eq!(checked(&project, &[".fusee"], 0), Vec::<Value>::new());
}

#[test]
fn a_template_with_mistakes_costs_the_others_one_line() {
    let project =
        Project::new().with(".fusee/templates/bad.xml", "<task name=\"bad\" type=\"atomc\">\n</task>\n");
    let ran = fusee(&project).args(["templates"]).run().exits(0);
    assert_eq!(
        ran.stderr.lines().next().unwrap(),
        "warning: skipped .fusee/templates/bad.xml:1:1: `<task>` is missing `<description>` (and 2 more errors); run `fusee check \
         .fusee/templates/bad.xml` for details"
    );
}

#[test]
fn templates_that_get_in_each_others_way_or_say_nothing_are_told() {
    let task = |name: &str, inner: &str| {
        format!(
            "<task name=\"{name}\" type=\"atomic\" subtype=\"s\" default=\"true\"><description>d</description>\
             <instructions>i</instructions>{inner}</task>\n"
        )
    };
    let project = Project::new()
        .with(".fusee/templates/a.xml", &task("a", "<provider>ollama</provider>"))
        .with(".fusee/templates/b.xml", &task("b", ""))
        .with(
            ".fusee/templates/c.xml",
            "<task name=\"c\" type=\"atomic\"><description>d</description><instructions>i</instructions>\
             <context_management><fresh_context>enabled</fresh_context></context_management></task>\n",
        );
    let problems = checked(&project, &[".fusee"], 1);
    let brief: Vec<String> = problems
        .iter()
        .map(|p| format!("{} {} {}", p["file"], p["severity"], p["code"]).replace('"', ""))
        .collect();
    assert_eq!(
        brief,
        [
            ".fusee/templates/a.xml warning provider-without-model",
            ".fusee/templates/b.xml error duplicate-default",
            ".fusee/templates/c.xml error context-conflict",
        ]
    );
}

#[test]
fn empty_files_and_files_that_are_not_text_are_errors() {
    let project = Project::new().with("w.fusee", "").with("t.xml", " \n").with("fusee.toml", "\n");
    project.write(".fusee/templates/blank.xml", "");
    std::fs::write(project.dir().join(".fusee/templates/binary.xml"), b"\xff\xfe\x00bad\xff").unwrap();
    std::fs::write(project.dir().join("b.fusee"), b"(list \xff)").unwrap();
    let checked = ["w.fusee", "b.fusee", "t.xml", "fusee.toml", ".fusee"];
    let shown = fusee(&project).args(["check", "--format", "json"]).args(checked).run().exits(1);
    let found: Vec<serde_json::Value> = serde_json::from_str(&shown.stdout).unwrap();
    let mut found: Vec<(&str, &str)> = found
        .iter()
        .map(|problem| (problem["file"].as_str().unwrap(), problem["code"].as_str().unwrap()))
        .collect();
    found.sort_unstable();
    let expected = [
        (".fusee/templates/binary.xml", "xml-encoding"),
        (".fusee/templates/blank.xml", "empty-file"),
        ("b.fusee", "unreadable"),
        ("fusee.toml", "empty-file"),
        ("t.xml", "empty-file"),
        ("w.fusee", "empty-file"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn names_that_do_not_exist_are_reported_with_their_line() {
    let template = |schema: &str| {
        format!(
            "<task name=\"{schema}\" type=\"atomic\"><description>D</description>\n<instructions>I</instructions>\n\
             <output_format type=\"json\" schema=\"{schema}\"/></task>"
        )
    };
    let config = "task_branching = true\ntask_flow_mode = \"staged\"\n\n[phase_control]\nmode = \"rules\"\ndefault = \"contex\"\n\n\
                  [[flow]]\nid = \"a\"\ntools_allow = [\"read_fil\"]\ntools_block = [\"zzz\"]\n";
    let project = Project::new()
        .with("fusee.toml", config)
        .with("word.xml", &template("objekt"))
        .with("file.xml", &template("missing.json"));
    let checked = ["fusee.toml", "word.xml", "file.xml"];
    let shown = fusee(&project).args(["check", "--format", "json"]).args(checked).run().exits(1);
    let found: Vec<serde_json::Value> = serde_json::from_str(&shown.stdout).unwrap();
    let mut found: Vec<String> = found
        .iter()
        .map(|problem| {
            let text = |key: &str| problem[key].as_str().unwrap_or_default().to_owned();
            format!("{}:{} {} {}", text("file"), problem["line"], text("severity"), text("message"))
        })
        .collect();
    found.sort_unstable();
    let expected = [
        "file.xml:3 error the schema file `missing.json` does not exist",
        "fusee.toml:1 error `task_branching` conflicts with `task_flow_mode = \"staged\"`",
        "fusee.toml:6 error `phase_control.default` names `contex`, which is not a state",
        "fusee.toml:8 error stage `a` names the unknown tool `read_fil`",
        "fusee.toml:8 warning stage `a` names the unknown tool `zzz`",
        "word.xml:3 error `objekt` is not a schema",
    ];
    assert_eq!(found, expected);
}
