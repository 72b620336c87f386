//! Earlier decisions of the user: rules by command prefix, and permanent answers.

use fusee_testkit::events::of_type;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::{at_terminal, fusee, kill_at_terminal};

fn with_user_settings(text: &str) -> Project {
    let project = Project::new();
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
    project
}

/// Runs the commands and returns the result of each.
fn results(project: &Project, approve: &str, commands: &[&str]) -> Vec<Value> {
    let mut lines: Vec<Line> =
        commands.iter().map(|command| Line::call("shell", json!({"command": command}))).collect();
    lines.push(Line::text("Done."));
    let script = project.script(&lines);
    let line = ["run", "x", "--json", "--sandbox", "off", "--approve", approve, "--model", &script];
    let events = fusee(project).args(line).run().exits(0).events();
    of_type(&events, "tool_result").into_iter().cloned().collect()
}

const RULES: &str = "[[rules]]\ncommand = \"echo\"\nthen = \"allow\"\nexamples = [\"echo a b\", \"ls; echo x\"]\nnot_examples = [\"echoes\"]\n\
                     [[rules]]\ncommand = \"echo secret\"\nthen = \"deny\"\n[[rules]]\ncommand = \"true\"\nthen = \"ask\"\n";

#[test]
fn rules_allow_refuse_and_ask_command_by_command() {
    let project = with_user_settings(RULES);
    // Every command needs approval and there is no user: only commands allowed by a rule run.
    let asked = results(
        &project,
        "ask",
        &["echo one", "echo one && echo two", "echo x; ls", "echo x > file", "echo $HOME"],
    );
    let fates: Vec<&Value> = asked.iter().map(|result| &result["fate"]).collect();
    assert_eq!(fates, [&Value::Null, &Value::Null, &json!("refused"), &json!("refused"), &json!("refused")]);
    // Every command runs, except those that a rule refuses or asks about.
    let auto = results(&project, "auto", &["ls", "echo secret", "/bin/echo secret", "ls && true"]);
    let fates: Vec<&Value> = auto.iter().map(|result| &result["fate"]).collect();
    assert_eq!(fates, [&Value::Null, &json!("refused"), &json!("refused"), &json!("refused")]);
    assert_eq!(auto[1]["content"], json!("Not run: denied by a user rule."));
    assert!(auto[3]["content"].as_str().unwrap().contains("nobody is there"), "{}", auto[3]);
    let never = results(&project, "never", &["true"]);
    assert!(never[0]["content"].as_str().unwrap().contains("cannot ask"), "{}", never[0]);
}

#[test]
fn examples_that_do_not_fit_stop_the_run_with_their_place() {
    let wrong = "[[rules]]\ncommand = \"git status\"\nthen = \"allow\"\nexamples = [\"git stash\"]\nnot_examples = [\"git status -s\"]\n\
                 [[rules]]\ncommand = \"a; b\"\nthen = \"allow\"\n[[rules]]\ncommand = \"a\"\nthen = \"maybe\"\nexample = []\n";
    let project = with_user_settings(wrong);
    let said = fusee(&project).args(["config"]).run().exits(2).stderr;
    for words in [
        "does not match its example `git stash`",
        "matches its counterexample `git status -s`",
        "the beginning of one plain command",
        "`then` of a rule must be",
        "unknown key `example` in a rule",
        "config.toml:4",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn an_answer_for_always_holds_in_this_project_and_a_resumed_run_keeps_its_rules() {
    let project = Project::new();
    let states = project.home().join(".local/state/fusee/projects");
    let refused = results(&project, "ask", &["echo one"]);
    assert_eq!(refused[0]["fate"], json!("refused"));
    // As the terminal writes it when the user answers `a`: the directory has the project's name.
    let name = project.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let real = project.dir().canonicalize().unwrap();
    let hash = &blake3::hash(real.as_os_str().as_encoded_bytes()).to_hex()[..8];
    let folder = states.join(format!("{name}-{hash}"));
    std::fs::create_dir_all(&folder).unwrap();
    let kept = json!([{"about": {"prefix": ["echo", "one"]}, "then": "allow"}]);
    std::fs::write(folder.join("approvals.json"), kept.to_string()).unwrap();
    let allowed = results(&project, "ask", &["echo one", "echo two"]);
    assert_eq!((&allowed[0]["fate"], &allowed[1]["fate"]), (&Value::Null, &json!("refused")));
    fusee(&project).args(["replay", &newest(&project)]).run().exits(0);
    // A damaged list allows nothing.
    std::fs::write(folder.join("approvals.json"), "[{").unwrap();
    assert_eq!(results(&project, "ask", &["echo one"])[0]["fate"], json!("refused"));
}

fn newest(project: &Project) -> String {
    let runs = fusee(project).args(["runs", "--json"]).run().exits(0).stdout;
    let runs: Value = serde_json::from_str(&runs).unwrap();
    runs[0]["run"].as_str().unwrap().to_owned()
}

#[test]
fn a_review_is_held_to_what_the_configuration_says_of_reviews() {
    let keys = "[review_mode_restrictions]\nallowed_tools = [\"read_file\", \"shell\"]\nmax_tool_calls = 2\nrequire_approval = true\nrequire_explanations = true\n";
    let project = with_user_settings(keys).with("a.txt", "one\n");
    let write = json!({"path": "b.txt", "content": "two\n"});
    let script = project.script(&[
        Line::call("shell", json!({"command": "echo ran >> effects.txt"})),
        Line::call("write_file", write.clone()),
        Line::call("write_file", write).with_text("To keep a note."),
        Line::call("read_file", json!({"path": "a.txt"})),
        Line::text("Nothing to say."),
    ]);
    let line = ["run", "look", "--review", "--json", "--sandbox", "off", "--model", &script];
    let events = fusee(&project).args(line).run().exits(0).events();
    let results: Vec<&str> =
        of_type(&events, "tool_result").iter().map(|result| result["content"].as_str().unwrap()).collect();
    assert_eq!(project.read("effects.txt"), "ran\n");
    assert!(results[1].contains("say in words what this call is for"), "{results:?}");
    let asked = of_type(&events, "approval_requested");
    assert_eq!(asked.len(), 1, "only the call that was explained is asked about");
    assert!(
        asked[0]["reason"].as_str().unwrap().ends_with("the model says: To keep a note."),
        "{}",
        asked[0]
    );
    assert!(results[2].contains("nobody is there"), "{results:?}");
    assert!(!results[3].contains("used its 2 calls"), "refused calls are not counted: {results:?}");
    // The specification's spelling, in an agent file; a typo is reported.
    let agent = project.home().join("agent.json");
    std::fs::write(
        &agent,
        r#"{"reviewModeRestrictions": {"maxToolCalls": 1, "allowedTools": ["read_fiel"]}}"#,
    )
    .unwrap();
    let agent = agent.to_str().unwrap();
    let said =
        fusee(&project).args(["run", "x", "--review", "--agent", agent, "--model", &script]).run().exits(2);
    assert!(said.stderr.contains("did you mean `read_file`"), "{}", said.stderr);
}

#[test]
fn standing_approvals_are_named_by_a_run_listed_and_revoked() {
    let project = Project::new();
    let none = fusee(&project).args(["approvals"]).run().exits(0).stdout;
    assert_eq!(none, "no saved approvals in this project\n");
    let commands =
        ["rm -rf build", "cargo test"].map(|command| Line::call("shell", json!({"command": command})));
    let edit = Line::call("write_file", json!({"path": "a.txt", "content": "one\n"}));
    let [rm, test] = commands;
    let script = project.script(&[rm, test, edit, Line::text("Done.")]);
    let mut asked = at_terminal(&project, &format!("run x -m {script} --approve ask --sandbox off"));
    // The second answer is widened first, which repeats the prompt.
    for (index, answer) in ["a", "w", "a", "a"].iter().enumerate() {
        asked.wait_for_stdout("question", |out| out.matches("n [REASON]: ").count() > index);
        std::thread::sleep(std::time::Duration::from_millis(100));
        asked.type_in(&format!("{answer}\n"));
    }
    asked.wait();
    let listed = fusee(&project).args(["approvals", "list"]).run().exits(0).stdout;
    assert_eq!(
        listed,
        "  1  exactly the command `rm -rf build`\n  2  every command that begins with `cargo test`\n  3  write_file on a.txt\n"
    );
    let allowed = results(&project, "ask", &["rm -rf build", "rm -rf build keep", "cargo test --doc"]);
    let fates: Vec<&Value> = allowed.iter().map(|result| &result["fate"]).collect();
    assert_eq!(fates, [&Value::Null, &json!("refused"), &Value::Null]);
    let model = project.script(&[Line::text("Done.")]);
    let output = fusee(&project).args(["run", "x", "-m", &model]).run().exits(0).stderr;
    assert!(
        output.contains(
            "saved approvals in use: exactly the command `rm -rf build`; every command that begins with `cargo test`; \
             write_file on a.txt (`fusee approvals` lists and revokes them)\n"
        ),
        "{output}"
    );
    let gone = fusee(&project).args(["approvals", "revoke", "7"]).run().exits(2);
    assert!(gone.stderr.contains("no saved approval 7: there are 3"), "{}", gone.stderr);
    let revoked = fusee(&project).args(["approvals", "revoke", "1", "3"]).run().exits(0).stdout;
    assert_eq!(revoked, "revoked: exactly the command `rm -rf build`\nrevoked: write_file on a.txt\n");
    let json = fusee(&project).args(["approvals", "--json"]).run().exits(0).stdout;
    let left: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(left[0]["covers"], json!("every command that begins with `cargo test`"));
    assert_eq!(results(&project, "ask", &["rm -rf build"])[0]["fate"], json!("refused"));
    fusee(&project).args(["approvals", "revoke", "--all"]).run().exits(0);
    let output = fusee(&project).args(["run", "x", "-m", &model]).run().exits(0).stderr;
    assert!(!output.contains("saved approvals"), "{output}");
}

#[test]
fn a_resumed_run_names_the_approvals_of_its_start_and_those_revoked_since() {
    let project = Project::new();
    let touch = |name: &str| Line::call("shell", json!({"command": format!("touch {name}")}));
    let script = project.script(&[touch("a"), touch("b"), Line::text("Done.")]);
    let run = format!("run x -m {script} --run-id r --approve ask --sandbox off");
    // An approval of an earlier run, and a run that is interrupted at its second question.
    let first = project.script(&[touch("a"), Line::text("Done.")]);
    let mut asked = at_terminal(&project, &format!("run x -m {first} --approve ask --sandbox off"));
    asked.wait_for_stdout("question", |out| out.contains("n [REASON]: "));
    asked.type_in("a\n");
    asked.wait();
    let mut stopped = at_terminal(&project, &run);
    stopped.wait_for_stdout("question", |out| out.contains("n [REASON]: "));
    kill_at_terminal(stopped);
    fusee(&project).args(["approvals", "revoke", "--all"]).run().exits(0);
    let output = fusee(&project).args(["resume", "r"]).run().exits(0).stderr;
    let used = "this run still uses approvals that you have since revoked: exactly the command `touch a`\n";
    assert!(output.contains(used) && !output.contains("saved approvals"), "{output}");
}

#[test]
fn a_question_shows_the_whole_command_and_its_input() {
    let project = Project::new();
    let command: String = (1..=60).map(|n| format!("true {n}\n")).collect();
    let call = json!({"command": command, "stdin": "hidden input\n"});
    let script = project.script(&[Line::call("shell", call), Line::text("Done.")]);
    let mut asked = at_terminal(&project, &format!("run x -m {script} --approve ask --sandbox off"));
    asked.wait_for_stdout("question", |out| out.contains("n [REASON]: "));
    asked.type_in("n\n");
    let shown = asked.wait().stdout;
    for words in ["    true 1", "    true 60", "hidden input", "62 lines, all of them above"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn calls_that_nobody_could_be_asked_about_are_announced_and_counted() {
    let project = Project::new();
    let write = Line::call("write_file", json!({"path": "a.txt", "content": "one\n"}));
    let script = project.script(&[write, Line::text("Done.")]);
    let line = ["run", "x", "--run-id", "r", "--approve", "ask", "--model", &script];
    let output = fusee(&project).args(line).run().exits(0).stderr;
    assert!(output.starts_with("warning: there is no terminal to ask on, so every call"), "{output}");
    assert!(
        output.contains("completed") && output.contains(" · 1 call refused because nobody could be asked\n"),
        "{output}"
    );
    let events = fusee(&project).args(["show", "r", "--json"]).run().exits(0).events();
    assert_eq!(of_type(&events, "task_report")[0]["feedback_counts"]["refused_unasked"], json!(1));
    let shown = fusee(&project).args(["show", "r"]).run().exits(0).stdout;
    assert!(shown.contains("1 call refused because nobody could be asked"), "{shown}");
}

#[test]
fn changes_that_nothing_verified_are_marked() {
    let project = Project::new();
    let write = || Line::call("write_file", json!({"path": "a.txt", "content": "one\n"}));
    let said = |flags: &[&str], lines: &[Line]| {
        let script = project.script(lines);
        let line = ["run", "x", "--sandbox", "off", "--model", &script];
        fusee(&project).args(line).args(flags.iter().copied()).run().exits(0).stderr
    };
    let unverified = said(&[], &[write(), Line::text("Done.")]);
    assert!(unverified.contains("changed a.txt · unverified\n"), "{unverified}");
    let verified = said(&["--verify", "true"], &[write(), Line::text("Done.")]);
    assert!(verified.contains(" · verified\n") && !verified.contains("unverified"), "{verified}");
    let nothing = said(&[], &[Line::text("Done.")]);
    assert!(!nothing.contains("unverified"), "{nothing}");

    let states: Vec<(String, Value)> = {
        let list = fusee(&project).args(["runs"]).run().exits(0).stdout;
        let words = list.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap().to_owned());
        let json = fusee(&project).args(["runs", "--json"]).run().exits(0).stdout;
        let json: Vec<Value> = serde_json::from_str(&json).unwrap();
        words.zip(json.into_iter().map(|run| run["verified"].clone())).collect()
    };
    let expected = [("completed", Value::Null), ("completed", json!(true)), ("unverified", json!(false))];
    assert_eq!(states, expected.map(|(status, verified)| (status.to_owned(), verified)));
    let events = fusee(&project).args(["show", "last~2", "--json"]).run().exits(0).events();
    assert_eq!(of_type(&events, "task_report")[0]["verified"], json!(false));
    assert!(fusee(&project).args(["show", "last~2"]).run().exits(0).stdout.contains(" · unverified\n"));
    assert!(fusee(&project).args(["show", "last~1"]).run().exits(0).stdout.contains(" · verified\n"));
    fusee(&project).args(["replay", "last~2"]).run().exits(0);
}

/// A rule for a program alone holds for whatever starts it; one with arguments looks at the command line only.
#[test]
fn a_denied_program_is_not_executed_by_a_script_either() {
    let project = with_user_settings("[[rules]]\ncommand = \"id\"\nthen = \"deny\"\n");
    project.write("build.sh", "#!/bin/sh\nid -u || echo refused\n");
    let place = project.dir().join("build.sh");
    std::fs::set_permissions(&place, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let script =
        project.script(&[Line::call("shell", json!({"command": "./build.sh"})), Line::text("Done.")]);
    let events = fusee(&project)
        .args(["run", "x", "--json", "--approve", "auto", "--model", &script])
        .run()
        .exits(0)
        .events();
    if events[0]["sandbox"] == "none" {
        return;
    }
    let content = of_type(&events, "tool_result")[0]["content"].as_str().unwrap().to_owned();
    assert!(content.contains("refused"), "{content}");
}
