//! Completion in real shells: names come from the project, and internals are not offered.

use fusee_testkit::project::Project;
use fusee_testkit::script::Line;

use crate::support::{binary, fusee};

/// A project with a run, a template with an input, and a configured model.
fn project() -> Project {
    let template = "<task name=\"greet-all\" type=\"atomic\"><description>Greets</description>\
        <inputs><input name=\"who\">Whom to greet</input></inputs>\
        <instructions>Greet {{who}}.</instructions></task>";
    let project = Project::new().with(".fusee/templates/greet.xml", template);
    let config = project.home().join(".config/fusee");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "[models.mymodel]\nmodel = \"ollama:tiny:1b\"\n").unwrap();
    let script = project.script(&[Line::text("Done.")]);
    fusee(&project).args(["run", "first", "--model", &script, "--run-id", "alpha"]).run().exits(0);
    project
}

/// Lines, each with the candidates for its last word.
const CASES: &[(&str, &[&str])] = &[
    ("templ", &["templates"]),
    ("__", &[]),
    ("show a", &["alpha"]),
    ("show las", &["last"]),
    ("runs und", &["undo"]),
    ("runs undo al", &["alpha"]),
    ("resume -C . al", &["alpha"]),
    ("run --flow sta", &["staged", "staged3"]),
    ("run -m my", &["mymodel"]),
    ("run --approve a", &["auto", "ask"]),
    ("run --template gre", &["greet-all"]),
    ("run --template greet-all -i w", &["who="]),
    ("templates show gre", &["greet-all"]),
    ("task gre", &["greet-all"]),
    ("task fix-tests", &["fix-tests"]),
    ("task summarise-f", &["summarise-folder"]),
    ("task greet-all w", &["who="]),
    ("task --dry-run greet-all ", &["who="]),
    ("run --max-tu", &["--max-turns"]),
];

fn check(shell: &str, completed: impl Fn(&Project, &str) -> Option<String>) {
    let project = project();
    for (line, expected) in CASES {
        let Some(said) = completed(&project, &format!("fusee {line}")) else {
            eprintln!("{shell} is not installed: its completions were not tested");
            return;
        };
        assert_eq!(said.lines().collect::<Vec<_>>(), *expected, "{shell}: {line}");
    }
}

/// Runs a script in a shell; `None` if the shell is not installed.
fn shell(project: &Project, program: &str, args: &[&str], script: &str, line: &str) -> Option<String> {
    std::process::Command::new(program).arg("--version").output().ok()?;
    let command = project.command(program).args(args.iter().chain(&[script]));
    Some(command.env("BINARY", binary()).env("LINE", line).run().exits(0).stdout)
}

#[test]
fn bash_completes_the_names_of_the_project() {
    let script = r#"fusee() { "$BINARY" "$@"; }
        source <(fusee completions bash)
        COMP_LINE=$LINE COMP_POINT=${#LINE}
        read -ra COMP_WORDS <<< "$LINE"; [[ $LINE == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _fusee 2>/dev/null
        printf '%s\n' "${COMPREPLY[@]}" | grep -v '^$' || true"#;
    check("bash", |project, line| shell(project, "bash", &["--norc", "-c"], script, line));
}

#[test]
fn bash_completes_after_a_colon() {
    let script = r#"fusee() { printf 'ollama:tiny:1b\t\n'; }
        source <("$BINARY" completions bash)
        COMP_LINE='fusee run -m ollama:ti' COMP_POINT=22
        COMP_WORDS=(fusee run -m ollama : ti) COMP_CWORD=5
        _fusee 2>/dev/null; printf '%s\n' "${COMPREPLY[@]}"
        COMP_LINE='fusee run -m ollama:' COMP_POINT=20
        COMP_WORDS=(fusee run -m ollama :) COMP_CWORD=4
        _fusee 2>/dev/null; printf '%s\n' "${COMPREPLY[@]}""#;
    let project = Project::new();
    let said = shell(&project, "bash", &["--norc", "-c"], script, "").unwrap();
    assert_eq!(said, "tiny:1b\ntiny:1b\n");
}

#[test]
fn zsh_completes_the_names_of_the_project() {
    // The completion system itself needs an interactive shell; its one function is replaced by one that prints.
    let script = r#"fusee() { "$BINARY" "$@" }
        compdef() { : }
        _files() { : }
        _describe() { local candidate; for candidate in ${(P)3}; do print -r -- "${candidate%%:*}"; done }
        source <(fusee completions zsh)
        words=(${(s: :)LINE}); [[ $LINE == *" " ]] && words+=("")
        CURRENT=${#words}
        _fusee"#;
    check("zsh", |project, line| shell(project, "zsh", &["-f", "-c"], script, line));
}

#[test]
fn fish_completes_the_names_of_the_project() {
    let script = r#"function fusee; $BINARY $argv; end
        fusee completions fish | source
        complete -C "$LINE" | string replace -r '\t.*' ''; or true"#;
    check("fish", |project, line| shell(project, "fish", &["--no-config", "-c"], script, line));
}
