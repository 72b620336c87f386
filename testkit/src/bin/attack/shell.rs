//! Command lines against rules. A grammar hides the program `evil` in every position that a shell knows. The lines
//! are then executed for real, in the sandbox of a throwaway project: with a rule that only allows `safe`, and nobody to
//! ask, nothing else may run or be written; with a rule that denies `evil`, it may not run. Lines that a rule lets
//! through are also given to bash and busybox, which are /bin/sh elsewhere.
//!
//! Programs such as awk and python, which run what their own language says, are not generated: what a rule by words
//! promises ends there (docs/permissions.md).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use fastrand::Rng;
use fusee_testkit::events;
use fusee_testkit::project::Project;
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::Finding;
use crate::arena::{Arena, Ran};

/// Number of lines per case, and of calls per reply.
const LINES: usize = 15;
const CALLS: usize = 5;

pub(crate) fn case(arena: &Arena, random: &mut Rng) -> Result<(), Finding> {
    let lines: Vec<String> = (0..LINES).map(|_| line(random)).collect();
    // The oracle must be alive: without rules, this line runs the program.
    let mut control = lines.clone();
    control.push("evil".to_owned());
    let (project, _) = execute(arena, &control, "", "auto")?;
    if !ran_evil(&project) {
        return Err("`evil` did not run without any rule: the check itself is broken".to_owned());
    }
    let (project, ran) = execute(arena, &lines, "[[rules]]\ncommand = \"safe\"\nthen = \"allow\"\n", "ask")?;
    let extra = unexpected_files(&project);
    if ran_evil(&project) || !extra.is_empty() {
        return Err(ran.wrong(&format!(
            "allowed more than `safe`: {} {extra:?} by one of {lines:?}",
            project.read("evil-log")
        )));
    }
    let in_other_shells = |rule: &str, ran: &Ran| -> Result<(), Finding> {
        for line in executed(ran, &lines) {
            for shell in [&["bash", "-c"][..], &["busybox", "sh", "-c"]] {
                if runs_evil_in(shell, line)? {
                    return Err(format!("{rule} lets {line:?} through, and {} runs `evil` by it", shell[0]));
                }
            }
        }
        Ok(())
    };
    in_other_shells("the rule that allows `safe`", &ran)?;
    let (project, ran) = execute(arena, &lines, "[[rules]]\ncommand = \"evil\"\nthen = \"deny\"\n", "auto")?;
    if ran_evil(&project) {
        return Err(
            ran.wrong(&format!("ran a denied program: {} by one of {lines:?}", project.read("evil-log")))
        );
    }
    in_other_shells("the rule that denies `evil`", &ran)
}

/// Runs the lines, each in a call of its own, in a new project.
fn execute(arena: &Arena, lines: &[String], rules: &str, approve: &str) -> Result<(Project, Ran), Finding> {
    let project = arena.project();
    let bin = project.dir().join("bin");
    programs(&bin, &project.dir().join("evil-log"))?;
    arena.settings(&project, rules)?;
    let replies: Vec<Line> = lines
        .chunks(CALLS)
        .map(|part| {
            let calls = part.iter().map(|line| json!({ "command": line, "timeout": 10 }));
            calls.fold(Line::raw(json!({})), |reply, call| reply.and_call("shell", call))
        })
        .chain([Line::text("Done.")])
        .collect();
    let model = project.script(&replies);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let words = ["run", "x", "--json", "--model", &model, "--approve", approve];
    let ran = arena.start_with(&project, &words, &[("PATH", &path)])?.wait(crate::arena::LIMIT)?.judged()?;
    if ran.code == Some(2) {
        return Err(ran.wrong("did not start"));
    }
    Ok((project, ran))
}

/// Writes the two programs.
fn programs(bin: &Path, log: &Path) -> Result<(), Finding> {
    let write = || {
        fs::create_dir_all(bin)?;
        for (name, text) in [
            ("safe", "#!/bin/sh\ntrue\n".to_owned()),
            ("evil", format!("#!/bin/sh\necho \"evil $*\" >> {}\n", log.display())),
        ] {
            fs::write(bin.join(name), text)?;
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755))?;
        }
        Ok::<(), std::io::Error>(())
    };
    write().map_err(|error| format!("{}: {error}", bin.display()))
}

fn ran_evil(project: &Project) -> bool {
    project.dir().join("evil-log").exists()
}

fn unexpected_files(project: &Project) -> Vec<String> {
    let known = ["bin", "fusee.toml", ".git", ".fusee", "evil-log"];
    let names = fs::read_dir(project.dir()).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !known.contains(&name.as_str())).collect()
}

/// The lines that were executed.
fn executed<'l>(ran: &Ran, lines: &'l [String]) -> Vec<&'l String> {
    let events = events::read(&ran.stdout);
    let results = events::of_type(&events, "tool_result");
    let is_run = |result: &&Value| result["content"].as_str().is_some_and(|text| text.contains("[exit code"));
    lines.iter().zip(results).filter(|(_, result)| is_run(result)).map(|(line, _)| line).collect()
}

/// Whether a shell runs `evil` by this line. Only the programs of the grammar are on its path.
fn runs_evil_in(shell: &[&str], line: &str) -> Result<bool, Finding> {
    let place = tempfile::tempdir().map_err(|error| format!("a directory: {error}"))?;
    let (bin, log) = (place.path().join("bin"), place.path().join("evil-log"));
    programs(&bin, &log)?;
    let Some(program) =
        ["/bin", "/usr/bin"].iter().map(|folder| Path::new(folder).join(shell[0])).find(|path| path.exists())
    else {
        return Ok(false);
    };
    let ran = Command::new(program)
        .args(&shell[1..])
        .arg(line)
        .env_clear()
        .env("PATH", &bin)
        .current_dir(place.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    ran.map_err(|error| format!("{}: {error}", shell[0]))?;
    Ok(log.exists())
}

/// A line of commands.
fn line(random: &mut Rng) -> String {
    let mut text = command(random, 3);
    for _ in 0..random.usize(0..3) {
        let between = [
            "; ",
            " && ",
            " || ",
            " | ",
            " & ",
            "\n",
            " |& ",
            ";\n",
            "&",
            " &>/dev/null ",
            "\r",
            "\u{b}",
            "\u{a0}",
        ];
        text.push_str(between[random.usize(0..between.len())]);
        text.push_str(&command(random, 3));
    }
    text
}

/// A command in any form that runs, or only mentions, one of the programs.
fn command(random: &mut Rng, depth: usize) -> String {
    if depth == 0 || random.u8(0..3) == 0 {
        return simple(random);
    }
    let inner = command(random, depth - 1);
    let forms: &[&dyn Fn(&str) -> String] = &[
        &|inner| format!("{{ {inner}; }}"),
        &|inner| format!("( {inner} )"),
        &|inner| format!("({inner})"),
        &|inner| format!("! {inner}"),
        &|inner| format!("if {inner}; then safe; fi"),
        &|inner| format!("if safe; then {inner}; fi"),
        &|inner| format!("while {inner}; do break; done"),
        &|inner| format!("until {inner}; do break; done"),
        &|inner| format!("for x in 1; do {inner}; done"),
        &|inner| format!("case a in a) {inner};; esac"),
        &|inner| format!("f() {{ {inner}; }}; f"),
        &|inner| format!("safe \"$({inner})\""),
        &|inner| format!("safe $({inner})"),
        &|inner| format!("safe `{inner}`"),
        &|inner| format!("X=$({inner}) safe"),
        &|inner| format!("safe ${{X:-$({inner})}}"),
        &|inner| format!("safe $(( $({inner}) 1 ))"),
        &|inner| format!("safe <<E\n$({inner})\nE"),
        &|inner| format!("sh <<'E'\n{inner}\nE"),
        &|inner| format!("safe <({inner})"),
        &|inner| format!("eval {}", quoted(inner)),
        &|inner| format!("sh -c {}", quoted(inner)),
        &|inner| format!("sh -ec {}", quoted(inner)),
        &|inner| format!("bash -c {}", quoted(inner)),
        &|inner| format!("env -S {}", quoted(inner)),
        &|inner| format!("echo {} | sh", quoted(inner)),
        &|inner| format!("trap {} EXIT", quoted(inner)),
        &|inner| format!("coproc {inner}"),
        &|inner| format!("[[ a ]] && {inner}"),
        &|inner| format!("safe # {inner}"),
        &|inner| format!("safe '{inner}'"),
        &|inner| format!("{inner} > out"),
        &|inner| format!("{inner} 2>&1"),
        &|inner| format!("> out {inner}"),
    ];
    forms[random.usize(0..forms.len())](&inner)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn simple(random: &mut Rng) -> String {
    let names = [
        "evil",
        "safe",
        "evil",
        "safe",
        "ev\"\"il",
        "\"evil\"",
        "'evil'",
        "e\\vil",
        "ev''il",
        "$'evil'",
        "$(echo evil)",
        "`echo evil`",
        "bin/evil",
        "./bin/evil",
        "\"$PWD\"/bin/evil",
        "${X:-evil}",
        "$X",
        "ev\\\nil",
        "ev{il,}",
        "safe\r",
        "safe\u{0c}",
        "[s]afe",
        "bin/ev*",
        "~+/bin/evil",
    ];
    let before = [
        "",
        "",
        "",
        "",
        "A=1 ",
        "A=1 B=2 ",
        "X=evil ",
        "X=evil; ",
        "env ",
        "env A=1 ",
        "env -i PATH=$PATH ",
        "command ",
        "exec ",
        "nohup ",
        "nice -n 5 ",
        "time ",
        "timeout 5 ",
        "xargs ",
        "builtin ",
        "stdbuf -o0 ",
        ">/dev/null ",
        "2>&1 ",
        "</dev/null ",
        "! ",
        "setsid ",
        "find . -maxdepth 0 -exec ",
        "echo evil | xargs ",
        "safe & ",
        "safe;",
        "\\",
        "function g { evil; }; g ",
    ];
    let after = [
        "", "", " x", " -c evil", " \\;", " $(evil)", " ;", " >out", " &", " $X", " '", " \\", " evil",
        " -- evil",
    ];
    format!(
        "{}{}{}",
        before[random.usize(0..before.len())],
        names[random.usize(0..names.len())],
        after[random.usize(0..after.len())]
    )
}
