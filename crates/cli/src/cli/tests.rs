//! Help output and usage errors.

use super::*;

fn parse_failure(arguments: &[&str]) -> (i32, String) {
    let arguments = std::iter::once("fusee").chain(arguments.iter().copied()).map(OsString::from);
    match read(arguments) {
        Ok(_) => (-1, String::new()),
        Err(EarlyExit { error, .. }) => (error.exit_code(), error.to_string()),
    }
}

#[test]
fn every_command_is_in_a_group_and_the_short_help_shows_eight() {
    let command = command();
    let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let mut known: Vec<&str> =
        command.get_subcommands().filter(|entry| !entry.is_hide_set()).map(clap::Command::get_name).collect();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known);
    assert_eq!(SHORT.len(), 8);
    assert!(SHORT.iter().all(|name| known.contains(name)));
}

#[test]
fn the_parser_is_sound() {
    command().debug_assert();
}

#[test]
fn unknown_names_come_with_the_nearest_known_ones_and_exit_2() {
    for (arguments, near) in [
        (&["rnu", "x"][..], "run"),
        (&["run", "x", "--max-turn", "3"], "--max-turns"),
        (&["run", "x", "--approve", "nevr"], "never"),
    ] {
        let (exit, text) = parse_failure(arguments);
        assert_eq!(exit, 2, "{text}");
        assert!(text.contains(near), "{text}");
    }
}

#[test]
fn a_request_without_quotes_is_recognised() {
    let (exit, text) = parse_failure(&["run", "fix", "the", "bug"]);
    assert_eq!(exit, 2);
    assert!(text.contains("put it in quotes"), "{text}");
    assert!(!parse_failure(&["run", "x", "--nope"]).1.contains("quotes"));
}

/// Texts that were wrapped twice had short lines in their middle.
#[test]
fn help_is_wrapped_once_in_a_narrow_terminal() {
    for columns in [40, 60, 80] {
        let mut command = command_for(columns);
        command.build();
        let text = command.render_long_help().to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= columns), "{columns}: {text}");
        for pair in lines.windows(2) {
            let next = pair[1].split_whitespace().next().unwrap_or_default();
            // The first word of a line that continues another did not fit there.
            let is_continued = pair[1].starts_with(&" ".repeat(INDENT)) && pair[0].starts_with("  ");
            let fits = pair[0].chars().count() + 1 + next.chars().count() <= columns;
            assert!(!(is_continued && fits), "{columns}: `{}` and `{}`", pair[0], pair[1]);
        }
        let paragraph = "`fusee run`.";
        assert!(text.lines().any(|line| line.contains(paragraph)), "{text}");
    }
    insta::assert_snapshot!(command_for(60).render_help().to_string());
}

#[test]
fn help_reads_well() {
    insta::assert_snapshot!(short_help_text());
    let (_, text) = parse_failure(&["--help"]);
    insta::assert_snapshot!(text);
}
