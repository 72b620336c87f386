//! The code reviewer: its input, its permissions, and the result of its findings.

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Script, Server};
use serde_json::{Value, json};

use crate::support::{fusee, with_key};

fn review<'p>(project: &'p Project, model: &str) -> Command<'p> {
    fusee(project).args(["review", "--model", model, "--sandbox", "off"])
}

fn findings(line: u64, severity: &str) -> String {
    let finding = json!({
        "file": "src/a.py", "line": line, "severity": severity, "claim": "It divides by zero.", "suggestion": "Check."
    });
    json!({ "summary": "Read a.", "findings": [finding] }).to_string()
}

fn project() -> Project {
    Project::new().with("src/a.py", "x = 0\ny = 1 / x\n").with(
        ".fusee/reference/style.md",
        "# House style\n\nNames explain themselves.\n\nNever divide without a check.\n",
    )
}

#[test]
fn findings_are_printed_and_decide_the_exit_code() {
    let project = project();
    let script = || project.script(&[Line::text(&findings(2, "major"))]);
    let text = review(&project, &script()).run().exits(0);
    assert_eq!(
        text.stdout,
        "major: src/a.py:2\n  It divides by zero.\n  → Check.\n\nRead a.\n\n1 finding: 1 major\n"
    );
    review(&project, &script()).args(["--fail-on", "critical"]).run().exits(0);
    review(&project, &script()).args(["--fail-on", "major", "--run-id", "severe"]).run().exits(5);
    let again = fusee(&project).args(["resume", "severe"]).run().exits(5);
    assert_eq!(again.stdout, text.stdout);
    fusee(&project).args(["replay", "severe"]).run().exits(0);
    let json = review(&project, &script()).args(["--format", "json"]).run().exits(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["findings"][0]["line"], &json["summary"]), (&json!(2), &json!("Read a.")));
    let sarif = review(&project, &script()).args(["--format", "sarif"]).run().exits(0);
    let sarif: Value = serde_json::from_str(&sarif.stdout).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["level"], json!("error"));
}

#[test]
fn a_review_in_stages_has_the_exit_code_of_its_findings() {
    let project = project().with("fusee.toml", "[[flow]]\nid = \"look\"\nallow_missing_done = true\n");
    let script = project.script(&[Line::text(&findings(2, "major"))]);
    let shown = review(&project, &script).args(["--fail-on", "major"]).run().exits(5);
    assert!(shown.stdout.starts_with("major: src/a.py:2\n"), "{}", shown.stdout);
}

#[test]
fn a_finding_about_a_line_that_is_not_there_is_sent_back_once() {
    let project = project();
    let mended = project.script(&[Line::text(&findings(20, "minor")), Line::text(&findings(2, "minor"))]);
    let events = review(&project, &mended).args(["--json"]).run().exits(0).events();
    let output = of_type(&events, "message")[1]["text"].as_str().unwrap();
    assert!(output.contains("`src/a.py` has 2 lines, there is no line 20"), "{output}");
    let two = |line: u64| {
        let mut answer: Value = serde_json::from_str(&findings(2, "minor")).unwrap();
        let more: Value = serde_json::from_str(&findings(line, "critical")).unwrap();
        answer["findings"].as_array_mut().unwrap().push(more["findings"][0].clone());
        answer.to_string()
    };
    let partly = project.script(&[Line::text(&two(20)), Line::text(&two(30))]);
    let kept = review(&project, &partly).args(["--fail-on", "major", "--run-id", "partly"]).run().exits(0);
    let left_out = "left out: finding 2: `src/a.py` has 2 lines, there is no line 30\n1 finding: 1 minor\n";
    assert!(kept.stdout.ends_with(left_out), "{}", kept.stdout);
    fusee(&project).args(["replay", "partly"]).run().exits(0);
    let stubborn = project.script(&[Line::text(&findings(20, "minor")), Line::text("All is well.")]);
    let events = review(&project, &stubborn).args(["--json"]).run().exits(1).events();
    assert_eq!(events.last().unwrap()["error"]["reason"], json!("output_format_failure"));
}

#[test]
fn the_reviewer_sees_the_project_and_opens_documents_over_several_turns() {
    let project = project();
    let open = Message::call(
        "open_sections",
        json!({"section_keys": ["reference.style"], "reason": "to know the style"}),
    );
    let write = Message::call("write_file", json!({"path": "src/b.py", "content": "x"}));
    let answer = Message::text(&json!({"summary": "By the style.", "findings": []}).to_string());
    let replies = [open, write, Message::text(&findings(2, "major")), answer];
    let server = Server::start(replies.into_iter().collect::<Script>());
    let on = |args: &[&str]| {
        let command = review(&project, "openai:scripted").args(args);
        with_key(command.args(["--api", "chat", "--base-url", &server.base_url()]))
    };
    let events =
        on(&["src/a.py", "--focus", "safety", "--json", "--run-id", "first"]).run().exits(0).events();
    assert_eq!((&events[0]["turn_type"], of_type(&events, "expansion").len()), (&json!("review"), 1));
    assert_eq!(of_type(&events, "tool_result")[1]["fate"], json!("refused"));
    let bodies: Vec<Value> = server.requests().iter().map(|request| request.arrived.json()).collect();
    let system = |n: usize| bodies[n]["messages"][0]["content"].as_str().unwrap();
    assert!(
        system(0).contains("## 2. Workspace Digest\n\n1 files.\n\nLanguages: Python (1)."),
        "{}",
        system(0)
    );
    assert!(system(0).contains("style.md: Names explain themselves.") && !system(0).contains("Never divide"));
    let task = "## 6. Review Task\n\nReview src/a.py.\n\n- **files:** src/a.py\n- **focus:** safety";
    assert!(system(0).ends_with(task), "{}", system(0));
    assert!(system(1).contains("Never divide without a check."), "{}", system(1));
    let tools = bodies[0]["tools"].to_string();
    assert!(
        tools.contains("\"read_file\"") && !tools.contains("\"write_file\"") && !tools.contains("\"shell\"")
    );
    let second = on(&["--continue", "By which rule?"]).run().exits(0);
    assert_eq!(second.stdout, "By the style.\n\nno findings\n");
    let last = server.requests().last().unwrap().arrived.json();
    let system = last["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("Never divide without a check."), "what was opened is closed again: {system}");
    assert!(system.contains("By which rule?") && !system.contains("Expansion Context"), "{system}");
    assert!(last["messages"].to_string().contains("It divides by zero."), "the conversation is lost");
}

#[test]
fn what_changed_since_a_revision_is_shown_and_a_wrong_one_is_usage() {
    let project = project();
    let git = |line: &str| {
        let run = project.command("sh").args(["-c", line]).env("GIT_CONFIG_GLOBAL", "/dev/null").run();
        run.exits(0);
    };
    git("git add . && git -c user.name=a -c user.email=a@b commit -qm one");
    project.write("src/a.py", "x = 0\ny = 2 / x\n");
    let server = Server::start(Message::text(&findings(2, "minor")));
    let command = review(&project, "openai:scripted").args(["--base", "HEAD"]);
    with_key(command.args(["--api", "chat", "--base-url", &server.base_url()])).run().exits(0);
    let body = server.requests()[0].arrived.json();
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("## 3. Changes\n\n```diff\ndiff --git a/src/a.py b/src/a.py"), "{system}");
    assert!(system.contains("-y = 1 / x\n+y = 2 / x"), "{system}");
    assert!(system.contains("Review what changed in this project since `HEAD`."), "{system}");
    let script = project.script(&[Line::text("never asked")]);
    let wrong = review(&project, &script).args(["--base", "no-such", "--json"]).run().exits(2).events();
    let last = wrong.last().unwrap();
    assert_eq!(last["error"]["code"], json!("INIT_FAILED"));
    assert!(last["error"]["message"].as_str().unwrap().contains("cannot diff against `no-such`"), "{last}");
    review(&project, &script).args(["nowhere.py"]).run().exits(2);
}

/// Nothing differs: no model is asked, and the answer has the requested form.
#[test]
fn a_review_of_changes_that_are_not_there_spends_nothing() {
    let project = project();
    let git = project.command("sh").env("GIT_CONFIG_GLOBAL", "/dev/null");
    git.args(["-c", "git add . && git -c user.name=a -c user.email=a@b commit -qm one"]).run().exits(0);
    let script = project.script(&[Line::text("never asked")]);
    let on = |args: &[&str]| review(&project, &script).args(["--base", "HEAD"]).args(args).run();
    let said = "Nothing changed since `HEAD`: there is nothing to review.";
    let text = on(&["--fail-on", "info", "--run-id", "clean"]).exits(0);
    assert_eq!(text.stdout, format!("{said}\n\nno findings\n"));
    assert!(text.stderr.contains("0 turns · 0 tokens"), "{}", text.stderr);
    let json: Value = serde_json::from_str(&on(&["--format", "json"]).exits(0).stdout).unwrap();
    assert_eq!(json, json!({ "summary": said, "findings": [] }));
    let sarif: Value = serde_json::from_str(&on(&["--format", "sarif"]).exits(0).stdout).unwrap();
    assert_eq!(sarif["runs"][0]["results"], json!([]));
    let events = on(&["--json"]).exits(0).events();
    assert_eq!(
        (of_type(&events, "turn_start").len(), events.last().unwrap()["total_tokens"].as_u64()),
        (0, Some(0))
    );
    fusee(&project).args(["replay", "clean"]).run().exits(0);
    assert_eq!(fusee(&project).args(["resume", "clean"]).run().exits(0).stdout, text.stdout);

    // A question is answered, and a new file is a change although no diff shows it.
    let answer = json!({ "summary": "Two lines.", "findings": [] }).to_string();
    let asked = project.script(&[Line::text(&answer)]);
    let asked =
        review(&project, &asked).args(["--base", "HEAD", "--ask", "How long is a.py?"]).run().exits(0);
    assert_eq!(asked.stdout, "Two lines.\n\nno findings\n");
    project.write("src/new.py", "y = 1\n");
    let server = Server::start(Message::text(&findings(2, "minor")));
    let command = review(&project, "openai:scripted").args(["--base", "HEAD"]);
    with_key(command.args(["--api", "chat", "--base-url", &server.base_url()])).run().exits(0);
    let body = server.requests()[0].arrived.json();
    let system = body["messages"][0]["content"].as_str().unwrap();
    let expected =
        "## 3. Changes\n\nNothing differs.\n\nNew files that git does not track yet:\n\n```\nsrc/new.py\n```";
    assert!(system.contains(expected), "{system}");
}

#[test]
fn the_demo_reviews_for_real() {
    let project = Project::new();
    let outcome = fusee(&project).args(["demo", "review"]).run().exits(0);
    assert!(outcome.stdout.starts_with("critical: freetime/span.py:41\n"), "{}", outcome.stdout);
    assert!(outcome.stdout.ends_with("3 findings: 1 critical, 1 major, 1 minor\n"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("no line"), "{}", outcome.stdout);
}

#[test]
fn a_project_words_the_reviewers_sections_in_its_own_way() {
    let project = project();
    let original = |key: &str| {
        let shown = fusee(&project).args(["prompt", "render", "--original", key]).run().exits(0).stdout;
        shown.lines().next().unwrap().to_owned()
    };
    for key in ["guidance", "planning", "workspace", "reference"] {
        project.write(&format!(".fusee/prompts/{key}.md"), &format!("{}\nOur own {key}.\n", original(key)));
    }
    project.write(".fusee/prompts/workspace.md", "<!-- original: 000000000000 -->\nNot used.\n");
    let server = Server::start([Message::text(&findings(2, "major"))].into_iter().collect::<Script>());
    let base_url = server.base_url();
    let command =
        review(&project, "openai:scripted").args(["--api", "chat", "--base-url", &base_url, "--json"]);
    let events = crate::support::with_key(command).run().exits(0).events();
    let body = server.requests()[0].arrived.json();
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with("## 1. Review Guidance\n\nOur own guidance.\n\n{"), "{system}");
    assert!(system.contains("Our own planning.") && system.contains("Our own reference."), "{system}");
    assert!(!system.contains("Not used."), "{system}");
    let output = of_type(&events, "warning");
    assert!(
        output[0]["message"]
            .as_str()
            .unwrap()
            .contains("workspace.md: it was written for another version of the original"),
        "{output:#?}"
    );
    // A plain run has none of these sections and no warnings about them.
    let script = project.script(&[Line::text("Fine.")]);
    let plain = crate::support::run_json(&project, &script).run().exits(0).events();
    assert_eq!(of_type(&plain, "warning").len(), 0);
}

#[test]
fn what_is_sent_back_is_told_in_order_and_the_draft_is_not_shown() {
    let project = project();
    let script = project.script(&[Line::text(&findings(20, "minor")), Line::text(&findings(2, "minor"))]);
    let outcome = review(&project, &script).run().exits(0);
    let said: Vec<&str> = outcome.stderr.lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(said.len(), 1, "{}", outcome.stderr);
    assert!(
        said[0].starts_with("  to the model: Your answer is not as it was asked for"),
        "{}",
        outcome.stderr
    );
    let script = project.script(&[Line::text("Not yet."), Line::text("Still not.")]);
    let refused =
        fusee(&project).args(["run", "x", "--model", &script, "--output-schema", "schema.json"]).run();
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    project.write("schema.json", "{\"type\": \"number\"}");
    let refused =
        fusee(&project).args(["run", "x", "--model", &script, "--output-schema", "schema.json"]).run();
    let at =
        |text: &str| refused.stderr.find(text).unwrap_or_else(|| panic!("no {text}: {}", refused.stderr));
    assert!(at("  Not yet.") < at("  to the model: "), "{}", refused.stderr);
}
