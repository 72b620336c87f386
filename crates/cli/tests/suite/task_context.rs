//! Context of a task besides its instructions: the conversation in which it was requested, and files in the
//! order in which a model ranks them.

use fusee_testkit::events::{Part, of_type, read_checked};
use fusee_testkit::kill_injection::{KillInjector, KillTime};
use fusee_testkit::project::{Command, Project};
use fusee_testkit::script::Line;
use fusee_testkit::server::{Message, Script, Server};
use serde_json::{Value, json};

use crate::support::{fusee, with_key};

fn asking<'p>(command: Command<'p>, server: &Server) -> Command<'p> {
    let args = ["--model", "openai:scripted", "--api", "chat", "--sandbox", "off", "--base-url"];
    with_key(command.args(args).args([&server.base_url()]))
}

/// Last message of each request.
fn asked(server: &Server) -> Vec<String> {
    let requests = server.requests().into_iter();
    let last = |body: Value| body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    requests.map(|request| last(request.arrived.json()).as_str().unwrap_or_default().to_owned()).collect()
}

fn replies(texts: &[&str]) -> Server {
    Server::start(texts.iter().map(|text| Message::text(text)).collect::<Script>())
}

fn template(name: &str, inner: &str) -> String {
    format!("<task name=\"{name}\" type=\"atomic\"><description>The task {name}</description>{inner}</task>")
}

fn result(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_further_task_is_shown_the_conversation_of_the_one_that_asks_for_it() {
    let project = Project::new()
        .with(".fusee/templates/lead.xml", &template("lead", "<instructions>Lead the work.</instructions>"))
        .with(".fusee/templates/part.xml", &template("part", "<instructions>Do a part.</instructions>"));
    let history = json!({"use_session_history": true});
    let request = json!({"name": "part", "history_config": history});
    let ask = json!({"status": "CONTINUATION", "notes": {"subtask_request": request}}).to_string();
    let server = replies(&[&ask, "The part."]);
    let command = fusee(&project).args(["task", "lead", "--json", "--run-id", "h"]);
    let done = result(&asking(command, &server).run().exits(0).stdout);
    assert_eq!(done["content"], "The part.");
    assert_eq!(done["notes"]["subtask"]["history_turns"], 1, "{done:#}");
    let expected = format!(
        "Do a part.\n\n## Context from the conversation so far\n\nuser: Lead the work.\n\nassistant: {ask}"
    );
    assert_eq!(asked(&server)[1], expected);
    fusee(&project).args(["replay", "h"]).run().exits(0);
}

#[test]
fn a_workflow_shows_its_tasks_the_conversation_that_it_was_begun_in() {
    let project = Project::new()
        .with(".fusee/templates/part.xml", &template("part", "<instructions>Do a part.</instructions>"));
    let server = replies(&["Noted.", "Also noted.", "By template.", "By definition."]);
    let config = "(history_config (dict \"use_session_history\" true \"history_turns_to_include\" 1))";
    let lines = format!(
        "remember quince\nremember medlar\n(part {config})\n\
         (defatom say (params) (instructions \"Say it.\")) (say {config})\n"
    );
    let outcome = asking(fusee(&project).args(["--plain"]).stdin(&lines), &server).run().exits(0);
    assert_eq!(outcome.stdout, "Noted.\nAlso noted.\nBy template.\nBy definition.\n", "{}", outcome.stderr);
    let output = "\n\n## Context from the conversation so far\n\n[what was said before is left out]\n\n\
        user: remember medlar\n\nassistant: Also noted.";
    assert_eq!(asked(&server)[2], format!("Do a part.{output}"));
    assert!(asked(&server)[3].starts_with("Say it.\n\n## Context from the conversation so far\n\n"));
    assert!(asked(&server)[3].ends_with("assistant: By template."), "{}", asked(&server)[3]);
}

#[test]
fn without_a_conversation_nothing_is_shown_and_the_notes_say_so() {
    let project = Project::new();
    let server = replies(&["It."]);
    let text = "(defatom say (params) (instructions \"Say it.\")) (say (history_config (dict \"use_session_history\" true)))";
    let done = asking(fusee(&project).args(["task", text, "--json"]), &server).run().exits(0);
    assert_eq!(result(&done.stdout)["notes"]["history_turns"], 0, "{}", done.stdout);
    assert_eq!(asked(&server), ["Say it."]);
}

/// Creates a project with files that match a task, and the task.
fn searched(ranking: &str) -> Project {
    let search = "<context_management><inherit_context>none</inherit_context>\
        <fresh_context>enabled</fresh_context></context_management><instructions>Mend the parser.</instructions>";
    let text = format!(
        "<task name=\"mend\" type=\"atomic\"><description>Mends the parser</description>{search}</task>"
    );
    Project::new()
        .with("fusee.toml", ranking)
        .with(".fusee/templates/mend.xml", &text)
        .with("parser.rs", "//! The parser of the parser.\nfn parser() {}\n")
        .with("lexer.rs", "//! Splits text for the parser.\nfn tokens() {}\n")
}

fn files(shown: &str) -> Vec<&str> {
    shown.lines().filter_map(|line| line.strip_prefix("## File ")).collect()
}

#[test]
fn files_come_in_the_order_of_their_words() {
    let project = searched("");
    let server = replies(&["Mended."]);
    asking(fusee(&project).args(["task", "mend"]), &server).run().exits(0);
    assert_eq!(files(&asked(&server)[0]), ["parser.rs", "lexer.rs"]);
}

#[test]
fn a_model_orders_the_files_where_it_is_told_to() {
    let project = searched("memory_ranking = \"model\"\n");
    let server = replies(&["```json\n[\"lexer.rs\", \"unknown.rs\"]\n```", "Mended."]);
    let command = fusee(&project).args(["task", "mend", "--json", "--run-id", "r"]);
    let done = result(&asking(command, &server).run().exits(0).stdout);
    let asked = asked(&server);
    let listed = "The files:\n- parser.rs: The parser of the parser. [parser]\n\
        - lexer.rs: Splits text for the parser. [tokens]\n";
    assert!(asked[0].ends_with(listed), "{}", asked[0]);
    assert_eq!(files(&asked[1]), ["lexer.rs", "parser.rs"]);
    assert_eq!(done["content"], "Mended.");
    // The query result is journaled: a replay uses it even if the files have changed.
    std::fs::remove_file(project.dir().join("lexer.rs")).unwrap();
    fusee(&project).args(["replay", "r"]).run().exits(0);
}

#[test]
fn a_bad_answer_leaves_the_order_by_words_and_is_told_and_counted() {
    let project = searched("memory_ranking = \"model\"\n");
    let lines = [
        Line::text("The parser, surely.").usage(100, 5),
        Line::text("Mended.").matching("## File parser.rs[^#]*## File lexer.rs").usage(10, 1),
    ];
    let args = ["task", "mend", "--json", "--sandbox", "off", "--run-id", "b", "--model"];
    let model = project.script(&lines);
    let done = result(&fusee(&project).args(args).args([&model]).run().exits(0).stdout);
    assert_eq!(done["notes"]["metrics"], json!({"turns": 1, "input_tokens": 110, "output_tokens": 6}));
    let events = fusee(&project).args(["show", "b", "--json"]).run().exits(0).stdout;
    let events = read_checked(&events, Part::Whole);
    let warning = of_type(&events, "warning")[0].clone();
    assert_eq!(warning["code"], "memory_ranking");
    assert!(warning["message"].as_str().unwrap().contains("the answer is not a list of paths"), "{warning}");
    assert_eq!(of_type(&events, "task_complete")[0]["total_tokens"], 116);
}

/// Kills the task before and after every journal write; it resumes to the same result each time.
fn sweep(project: impl Fn() -> Project, lines: &[Line], tokens: u64) {
    let killer = KillInjector::build();
    let begun = |project: &Project| -> Vec<String> {
        let args = ["task", "mend", "--sandbox", "off", "--approve", "auto", "--run-id", "k", "--model"];
        args.iter().map(ToString::to_string).chain([project.script(lines)]).collect()
    };
    let is_whole = |project: &Project, case: &str| {
        let events = fusee(project).args(["show", "k", "--json"]).run().exits(0).stdout;
        let events = read_checked(&events, Part::Whole);
        let last = events.last().unwrap();
        // A journaled reply is never requested again, nor counted twice.
        assert_eq!((&last["answer"], &last["total_tokens"]), (&json!("Mended."), &json!(tokens)), "{case}");
        fusee(project).args(["replay", "k"]).run().exits(0);
    };
    let writes = {
        let project = project();
        let (command, trace) = killer.watch(fusee(&project).args(begun(&project)));
        command.run().exits(0);
        is_whole(&project, "undisturbed");
        trace.count()
    };
    assert!(writes >= 3, "only {writes} journal writes were seen");
    for (n, when) in (1..=writes).flat_map(|n| [(n, KillTime::Before), (n, KillTime::After)]) {
        let project = project();
        killer.kill_at(fusee(&project).args(begun(&project)), n, when).run();
        if fusee(&project).args(["resume", "k"]).run().code == Some(2) {
            fusee(&project).args(begun(&project)).run().exits(0);
        }
        is_whole(&project, &format!("killed {when:?} write {n}"));
    }
}

#[test]
fn an_order_that_a_model_gave_is_whole_after_a_kill_at_any_journal_write() {
    let lines = [
        Line::text("[\"lexer.rs\", \"parser.rs\"]").usage(100, 5),
        Line::text("Mended.").matching("## File lexer.rs[^#]*## File parser.rs").usage(10, 1),
    ];
    sweep(|| searched("memory_ranking = \"model\"\n"), &lines, 116);
}

#[test]
fn files_that_a_command_listed_are_whole_after_a_kill_at_any_journal_write() {
    let inner = "<file_paths source=\"command\"><command>ls *.rs</command></file_paths>\
        <instructions>Mend the parser.</instructions>";
    let project = || {
        Project::new()
            .with(".fusee/templates/mend.xml", &template("mend", inner))
            .with("parser.rs", "fn parser() {}\n")
    };
    sweep(project, &[Line::text("Mended.").usage(10, 1)], 11);
}
