//! Tests of how a line of input is parsed.

use super::*;

#[test]
fn every_entry_of_the_table_is_understood_and_nothing_else() {
    for entry in TABLE {
        assert!(
            matches!(
                parse_line(entry.name),
                InputLine::Command(_)
                    | InputLine::Request(RunRequest::Task(_) | RunRequest::Review(_) | RunRequest::Init)
            ),
            "{}",
            entry.name
        );
    }
    let InputLine::Unknown(problem) = parse_line("/modle x") else { panic!("understood") };
    assert!(problem.contains("`/model`"), "{problem}");
    assert_eq!(
        parse_line("/approve sometimes"),
        InputLine::Unknown("invalid value `sometimes` for /approve: expected auto, ask or never".to_owned())
    );
    assert_eq!(parse_line("/quit now"), InputLine::Unknown("/quit takes no arguments".to_owned()));
}

#[test]
fn words_and_paths_are_for_the_model() {
    let words = |typed: &str| match parse_line(typed) {
        InputLine::Request(RunRequest::Words(words)) => words,
        other => panic!("{other:?}"),
    };
    assert_eq!(words("  fix it\nand test it \n"), "fix it\nand test it");
    assert_eq!(words("/usr/bin/cc fails"), "/usr/bin/cc fails");
    assert_eq!(words("//help is what?"), "/help is what?");
    assert_eq!(parse_line(" \n"), InputLine::Nothing);
    assert_eq!(words("!"), "!");
    assert_eq!(parse_line("! git status"), InputLine::Shell("git status".to_owned()));
    assert_eq!(parse_line("/plan on"), InputLine::Command(SlashCommand::PlanMode(true)));
}

#[test]
fn tasks_and_reviews_are_errands_and_a_parenthesis_begins_a_workflow() {
    let task = |line: &str| InputLine::Request(RunRequest::Task(line.to_owned()));
    assert_eq!(parse_line("/task fix-tests command='make test'"), task("fix-tests command='make test'"));
    assert_eq!(parse_line(" (+ 1\n2)"), task("(+ 1\n2)"));
    let review = RunRequest::Review("--base main src".to_owned());
    assert_eq!(review.shown(), "/review --base main src");
    assert_eq!(parse_line("/review --base main src"), InputLine::Request(review));
}

#[test]
fn arguments_are_kept_whole() {
    assert_eq!(
        parse_line("/model ollama:qwen2.5-coder"),
        InputLine::Command(SlashCommand::Model(Some("ollama:qwen2.5-coder".to_owned())))
    );
    assert_eq!(
        parse_line("/export a file.md"),
        InputLine::Command(SlashCommand::Export(Some("a file.md".to_owned())))
    );
    assert_eq!(
        parse_line("/approve ask"),
        InputLine::Command(SlashCommand::Approve(Some(ApprovalMode::Ask)))
    );
}

#[test]
fn a_unique_beginning_names_a_command() {
    assert_eq!(parse_line("/he"), InputLine::Command(SlashCommand::Help));
    assert_eq!(parse_line("/rev src"), InputLine::Request(RunRequest::Review("src".to_owned())));
    assert_eq!(
        parse_line("/re"),
        InputLine::Unknown("/re is ambiguous: /review, /rewind, /resume".to_owned())
    );
    assert_eq!(parse_line("/exit"), InputLine::Command(SlashCommand::Quit));
}
