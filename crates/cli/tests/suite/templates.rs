//! `fusee templates` and `fusee match`: the three layers, shadowing, and matching a description.

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::fusee;

fn template(name: &str, description: &str) -> String {
    format!(
        "<task name=\"{name}\" type=\"atomic\"><description>{description}</description><instructions>Do it.</instructions></task>"
    )
}

fn listed(project: &Project) -> Vec<Value> {
    let shown = fusee(project).args(["templates", "--json"]).run().exits(0);
    serde_json::from_str(&shown.stdout).unwrap()
}

#[test]
fn templates_of_all_layers_are_listed_and_nearer_ones_shadow() {
    let project = Project::new()
        .with(".fusee/templates/deep/own.xml", &template("own", "Do my own thing"))
        .with(".fusee/templates/review.xml", &template("review", "Review it our way"));
    let list = listed(&project);
    let one = |name: &str| list.iter().find(|one| one["name"] == name).unwrap();
    assert_eq!(one("own")["layer"], "project");
    assert_eq!(one("own")["file"], ".fusee/templates/deep/own.xml");
    assert_eq!(one("review")["layer"], "project");
    assert_eq!(one("review")["shadows"], json!(["built-in:review"]));
    assert_eq!(one("summarise")["layer"], "built-in");
    let table = fusee(&project).args(["templates"]).run().exits(0).stdout;
    assert!(table.contains("shadows built-in:review"), "{table}");
}

#[test]
fn a_template_with_mistakes_is_left_out_and_told_of_and_the_others_are_there() {
    let project = Project::new().with(".fusee/templates/good.xml", &template("good", "Good")).with(
        ".fusee/templates/bad.xml",
        "<task name=\"bad\" type=\"atomic\">\n  <description>x</descripton>\n</task>",
    );
    let shown = fusee(&project).args(["templates", "--json"]).run().exits(0);
    assert!(shown.stderr.contains(".fusee/templates/bad.xml:2"), "{}", shown.stderr);
    let list: Vec<Value> = serde_json::from_str(&shown.stdout).unwrap();
    assert!(list.iter().any(|one| one["name"] == "good"));
    assert!(!list.iter().any(|one| one["name"] == "bad"));
}

#[test]
fn two_of_one_name_in_one_layer_are_an_error_that_names_both_files() {
    let project = Project::new()
        .with(".fusee/templates/a.xml", &template("same", "One"))
        .with(".fusee/templates/b.xml", &template("same", "Two"));
    let shown = fusee(&project).args(["templates"]).run().exits(0);
    assert!(shown.stderr.contains(".fusee/templates/a.xml"), "{}", shown.stderr);
    assert!(shown.stderr.contains(".fusee/templates/b.xml"), "{}", shown.stderr);
}

#[test]
fn words_are_matched_best_first() {
    let project =
        Project::new().with(".fusee/templates/a.xml", &template("greet", "Write a greeting for a birthday"));
    let shown = fusee(&project).args(["match", "a birthday greeting", "--json"]).run().exits(0);
    let list: Vec<Value> = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(list[0]["name"], "greet");
    assert_eq!(list[0]["subtype"], "standard");
    assert_eq!(list[0]["description"], "Write a greeting for a birthday");
    assert_eq!(
        list[0].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["score", "name", "subtype", "description"]
    );
    let scores: Vec<f64> = list.iter().map(|one| one["score"].as_f64().unwrap()).collect();
    assert!(scores.iter().all(|score| *score >= 0.1 && *score <= 1.0), "{scores:?}");
    assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]), "{scores:?}");
    assert_eq!(fusee(&project).args(["match", "zebra", "--json"]).run().exits(0).stdout, "[]\n");
}

#[test]
fn a_new_template_is_valid_and_never_overwrites() {
    let project = Project::new();
    let made = fusee(&project).args(["templates", "new", "mine"]).run().exits(0);
    assert!(made.stdout.trim().ends_with(".fusee/templates/mine.xml"), "{}", made.stdout);
    assert!(listed(&project).iter().any(|one| one["name"] == "mine"));
    fusee(&project).args(["templates", "new", "mine"]).run().exits(2);
    fusee(&project).args(["templates", "new", "no good"]).run().exits(2);
    let shown = fusee(&project).args(["templates", "show", "mine"]).run().exits(0);
    assert!(shown.stdout.contains("<task name=\"mine\""), "{}", shown.stdout);
    let missing = fusee(&project).args(["templates", "show", "mien"]).run().exits(2);
    assert!(missing.stderr.contains("did you mean `mine`?"), "{}", missing.stderr);
}

#[test]
fn check_tells_of_a_conflict_with_the_defaults_of_the_subtype() {
    let file = |subtype: &str, inner: &str| {
        let text = format!(
            "<task name=\"t\" type=\"atomic\" subtype=\"{subtype}\">\n  <description>x</description>\n  <instructions>y</instructions>\n  \
             <context_management>\n    {inner}\n  </context_management>\n</task>\n"
        );
        Project::new().with("t.xml", &text)
    };
    let fresh = "<fresh_context>enabled</fresh_context>";
    let project = file("standard", fresh);
    let shown = fusee(&project).args(["check", "t.xml", "--format", "json"]).run().exits(1);
    let problems: Value = serde_json::from_str(&shown.stdout).unwrap();
    let problem = &problems[0];
    assert_eq!(problem["code"], "context-conflict", "{problems}");
    assert!(shown.stdout.contains("the default of the subtype `standard`"), "{problems}");
    assert_eq!(problem["line"].as_u64().or(problem["start"]["line"].as_u64()), Some(5), "{problems}");
    fusee(&file("subtask", "<inherit_context>full</inherit_context>"))
        .args(["check", "t.xml"])
        .run()
        .exits(1);
    fusee(&file("subtask", fresh)).args(["check", "t.xml"]).run().exits(0);
}

#[test]
fn one_template_is_shown_and_begun_as_json_too() {
    let project = Project::new().with(".fusee/templates/mine.xml", &template("mine", "My own"));
    let shown = fusee(&project).args(["templates", "show", "mine", "--json"]).run().exits(0);
    let described: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(
        (&described["name"], &described["layer"], &described["text"]),
        (&json!("mine"), &json!("project"), &json!(template("mine", "My own")))
    );
    let begun = fusee(&project).args(["templates", "new", "next", "--json"]).run().exits(0);
    let begun: Value = serde_json::from_str(&begun.stdout).unwrap();
    assert_eq!(begun["name"], "next");
    assert!(begun["file"].as_str().unwrap().ends_with(".fusee/templates/next.xml"), "{begun}");
    assert!(!project.read(".fusee/templates/next.xml").is_empty());
}

#[test]
fn memory_tells_the_words_of_the_query_and_knows_a_file_by_any_of_its_paths() {
    let project = Project::new().with("src/inv.rs", "//! Parses invoices.\npub fn parse_invoice() {}\n");
    let shown = fusee(&project).args(["memory", "query", "parsing Invoices", "--json"]).run().exits(0);
    let answer: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(
        answer["matches"][0]["reason"], "symbols: parsing invoices; summary: parsing invoices",
        "{answer}"
    );
    let absolute = project.dir().join("src/inv.rs");
    for path in ["src/inv.rs", "./src/inv.rs", "src/../src/./inv.rs", absolute.to_str().unwrap()] {
        fusee(&project).args(["memory", "show", path]).run().exits(0);
    }
    fusee(&project).args(["memory", "show", "inv.rs"]).run().exits(2);
}

#[test]
fn tools_are_named_in_any_case() {
    let text = "<task name=\"t\" type=\"atomic\"><description>x</description><instructions>y</instructions>\
                <tools allow=\"Bash, READ_FILE\"/></task>";
    let project = Project::new().with(".fusee/templates/t.xml", text);
    fusee(&project).args(["check", ".fusee/templates/t.xml"]).run().exits(0);
    let model =
        project.script(&[Line::call("shell", json!({"command": "echo made > a.txt"})), Line::text("ok")]);
    let flags = ["--model", model.as_str(), "--sandbox", "off"];
    fusee(&project).args(["task", "t"]).args(flags).run().exits(0);
    assert_eq!(project.read("a.txt"), "made\n");
}
