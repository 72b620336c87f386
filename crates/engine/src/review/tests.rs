//! Findings are checked against the files; a digest is bounded; the output formats are valid.

use fusee_tools::Workspace;
use serde_json::{Value, json};

use super::*;
use crate::agent::AnswerCheck;
use crate::prompt::workspace_digest;

fn project() -> (tempfile::TempDir, Workspace) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("src")).expect("src");
    std::fs::write(folder.path().join("src/a.rs"), "one\ntwo\nthree").expect("a file");
    std::fs::write(folder.path().join("Cargo.toml"), "").expect("a file");
    let workspace = Workspace::open(folder.path()).expect("a workspace");
    (folder, workspace)
}

fn answer(findings: &Value) -> String {
    json!({ "summary": "Looked at all.", "findings": findings }).to_string()
}

fn finding(file: &str, line: u64, severity: &str) -> Value {
    json!({ "file": file, "line": line, "severity": severity, "claim": "It is wrong.", "suggestion": "Mend it." })
}

#[test]
fn findings_are_about_lines_that_exist() {
    let (_folder, workspace) = project();
    let check = FindingsCheck::new(&CodeReview::default()).expect("a check");
    let wrong = answer(&json!([
        finding("src/a.rs", 4, "major"),
        finding("src/b.rs", 1, "major"),
        finding("../etc/passwd", 1, "major"),
        finding("src", 1, "major"),
    ]));
    let problem = check.check(&wrong, &workspace).expect_err("none of them exists");
    assert!(
        problem.starts_with("finding 1: `src/a.rs` has 3 lines, there is no line 4; finding 2: "),
        "{problem}"
    );
    assert!(
        problem.contains("finding 3: ") && problem.ends_with("finding 4: `src` is not a file"),
        "{problem}"
    );
    let none =
        check.check(&answer(&json!([finding("src/a.rs", 0, "grave")])), &workspace).expect_err("no line 0");
    assert!(none.contains("/findings/0/line") && none.contains("/findings/0/severity"), "{none}");
}

#[test]
fn after_a_complaint_the_findings_that_hold_are_kept_and_the_others_named() {
    let (_folder, workspace) = project();
    let of = |format| {
        let review = CodeReview { format, fail_on: Some(FindingSeverity::Major), ..CodeReview::default() };
        FindingsCheck::new(&review).expect("a check")
    };
    let mixed = answer(&json!([
        finding("src/a.rs", 4, "critical"),
        finding("src/a.rs", 2, "minor"),
        finding("src/b.rs", 1, "critical"),
    ]));
    let text = of(FindingsFormat::Text).check_last(&mixed, &workspace).expect("one of them holds");
    assert!(text.answer.starts_with("minor: src/a.rs:2\n"), "{}", text.answer);
    assert!(
        text.answer.contains(
            "left out: finding 1: `src/a.rs` has 3 lines, there is no line 4\nleft out: finding 3: "
        ),
        "{}",
        text.answer
    );
    assert!(text.answer.ends_with("1 finding: 1 minor") && !text.fails_run, "{}", text.answer);
    let json = of(FindingsFormat::Json).check_last(&mixed, &workspace).expect("one of them holds").answer;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (json["findings"].as_array().map(Vec::len), json["left_out"].as_array().map(Vec::len)),
        (Some(1), Some(2))
    );
    let sarif = of(FindingsFormat::Sarif).check_last(&mixed, &workspace).expect("one of them holds").answer;
    let sarif: Value = serde_json::from_str(&sarif).expect("JSON");
    let notes = &sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    assert_eq!(notes.as_array().map(Vec::len), Some(2));
    let none = answer(&json!([finding("src/b.rs", 1, "critical")]));
    of(FindingsFormat::Text).check_last(&none, &workspace).expect_err("none of them is believed");
}

#[test]
fn findings_are_sorted_counted_and_may_fail_the_run() {
    let (_folder, workspace) = project();
    let found = answer(&json!([
        finding("src/a.rs", 3, "minor"),
        finding("src/a.rs", 2, "critical"),
        finding("src/a.rs", 1, "minor"),
    ]));
    let check = |fail_on| {
        let review = CodeReview { fail_on, ..CodeReview::default() };
        FindingsCheck::new(&review).expect("a check").check(&found, &workspace).expect("accepted")
    };
    let accepted = check(Some(FindingSeverity::Critical));
    assert_eq!(
        accepted.answer,
        "critical: src/a.rs:2\n  It is wrong.\n  → Mend it.\n\nminor: src/a.rs:1\n  It is wrong.\n  → Mend it.\n\n\
         minor: src/a.rs:3\n  It is wrong.\n  → Mend it.\n\nLooked at all.\n\n3 findings: 1 critical, 2 minor"
    );
    assert!(accepted.fails_run && !check(None).fails_run);
}

#[test]
fn sarif_says_where_and_how_bad() {
    let (_folder, workspace) = project();
    let review = CodeReview { format: FindingsFormat::Sarif, ..CodeReview::default() };
    let check = FindingsCheck::new(&review).expect("a check");
    let found = answer(&json!([finding("src/a.rs", 2, "major")]));
    let sarif: Value =
        serde_json::from_str(&check.check(&found, &workspace).expect("accepted").answer).expect("JSON");
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(
        sarif["runs"][0]["results"],
        json!([{
            "ruleId": "major", "level": "error",
            "message": { "text": "It is wrong.\n\nSuggestion: Mend it." },
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": "src/a.rs", "uriBaseId": "%SRCROOT%" },
                "region": { "startLine": 2 },
            } }],
        }])
    );
}

#[test]
fn a_digest_tells_a_project_in_a_page() {
    let (folder, _workspace) = project();
    assert_eq!(
        workspace_digest(folder.path(), None, Some("main"), Some(" M src/a.rs\n")),
        "2 files.\n\nLanguages: Rust (1), TOML (1).\n\nLayout:\n- src/ (1)\n- at the top: Cargo.toml\n\n\
         Build files: Cargo.toml.\n\nGit branch: main. Uncommitted:\n M src/a.rs\n"
    );
    for n in 0..300 {
        let inner = folder.path().join(format!("many/folder-{n}"));
        std::fs::create_dir_all(&inner).expect("a folder");
        std::fs::write(inner.join("f.py"), "").expect("a file");
    }
    let digest = workspace_digest(folder.path(), None, None, None);
    assert!(
        digest.len() < 2_000 && digest.contains("- src/ (1)\n") && digest.contains("and 278 more folders"),
        "{digest}"
    );
}

/// The parts of SARIF 2.1.0 that are written, with `additionalProperties` false as in the official schema.
fn sarif_schema() -> Value {
    let text = json!({ "type": "object", "required": ["text"], "additionalProperties": false,
        "properties": { "text": { "type": "string", "minLength": 1 } } });
    let level = json!({ "enum": ["none", "note", "warning", "error"] });
    let rule = json!({ "type": "object", "required": ["id"], "additionalProperties": false, "properties": {
        "id": { "type": "string" },
        "defaultConfiguration": { "type": "object", "additionalProperties": false, "properties": { "level": level } },
    } });
    let place = json!({ "type": "object", "additionalProperties": false, "properties": { "physicalLocation": {
        "type": "object", "required": ["artifactLocation"], "additionalProperties": false, "properties": {
            "artifactLocation": { "type": "object", "additionalProperties": false, "properties": {
                "uri": { "type": "string", "format": "uri-reference", "pattern": "^[A-Za-z0-9._~/%-]+$" },
                "uriBaseId": { "type": "string" },
            } },
            "region": { "type": "object", "additionalProperties": false,
                "properties": { "startLine": { "type": "integer", "minimum": 1 } } },
        },
    } } });
    let result = json!({ "type": "object", "required": ["message"], "additionalProperties": false, "properties": {
        "ruleId": { "enum": ["info", "minor", "major", "critical"] }, "level": level, "message": text,
        "locations": { "type": "array", "items": place },
    } });
    let notice = json!({ "type": "object", "required": ["message"], "additionalProperties": false,
        "properties": { "level": level, "message": text } });
    let invocation = json!({ "type": "object", "required": ["executionSuccessful"], "additionalProperties": false,
        "properties": { "executionSuccessful": { "type": "boolean" },
            "toolExecutionNotifications": { "type": "array", "items": notice } } });
    let driver = json!({ "type": "object", "required": ["name"], "additionalProperties": false, "properties": {
        "name": { "type": "string" }, "semanticVersion": { "type": "string", "pattern": r"^\d+\.\d+\.\d+" },
        "rules": { "type": "array", "items": rule, "uniqueItems": true },
    } });
    let run = json!({ "type": "object", "required": ["tool"], "additionalProperties": false, "properties": {
        "tool": { "type": "object", "required": ["driver"], "additionalProperties": false, "properties": { "driver": driver } },
        "invocations": { "type": "array", "items": invocation }, "properties": { "type": "object" },
        "results": { "type": "array", "items": result },
    } });
    json!({ "type": "object", "required": ["version", "runs"], "additionalProperties": false, "properties": {
        "$schema": { "type": "string", "format": "uri" }, "version": { "const": "2.1.0" },
        "runs": { "type": "array", "items": run },
    } })
}

#[test]
fn what_is_written_as_sarif_is_sarif() {
    let (folder, workspace) = project();
    std::fs::write(folder.path().join("a b #1%ü.rs"), "x\n").expect("a file");
    let schema = jsonschema::validator_for(&sarif_schema()).expect("a schema");
    let review = CodeReview { format: FindingsFormat::Sarif, ..CodeReview::default() };
    let check = FindingsCheck::new(&review).expect("a check");
    let found = [
        json!([]),
        json!([
            finding("src/a.rs", 2, "info"),
            finding("./src/a.rs", 1, "critical"),
            finding("a b #1%ü.rs", 1, "minor")
        ]),
        json!([finding("src/a.rs", 2, "major"), finding("src/a.rs", 9, "major")]),
    ];
    for findings in found {
        let written = check.check_last(&answer(&findings), &workspace).expect("accepted").answer;
        let written: Value = serde_json::from_str(&written).expect("JSON");
        let problems: Vec<String> = schema.iter_errors(&written).map(|problem| problem.to_string()).collect();
        assert!(problems.is_empty(), "{problems:#?}\n{written:#}");
    }
}
