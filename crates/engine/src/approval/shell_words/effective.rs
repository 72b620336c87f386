//! The commands that a program runs because its arguments say so: `env`, `sh -c`, `xargs` and others.

/// What a command runs besides its own program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RunBy {
    Nothing,
    /// Commands, of which at least one is run; the others may be arguments of options.
    Commands(Vec<Vec<String>>),
    /// Shell text given as an argument.
    Script(String),
    /// What it reads from its input.
    Input,
    /// Something that cannot be told.
    Unknown,
}

/// Programs that run a command given as their arguments, after options, assignments and numbers.
const WRAPPERS: [&str; 26] = [
    "env", "command", "builtin", "exec", "nohup", "nice", "ionice", "chrt", "taskset", "time", "timeout",
    "setsid", "stdbuf", "sudo", "doas", "xargs", "parallel", "busybox", "toybox", "watch", "strace",
    "ltrace", "unshare", "setpriv", "chroot", "flock",
];

/// Shells: they run a script given after `-c`, a file, or their input.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "yash", "fish"];

/// Options of `find` that a command follows.
const FIND_ACTIONS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

pub(super) fn run_by(words: &[String]) -> RunBy {
    let Some((program, arguments)) = words.split_first() else { return RunBy::Nothing };
    let name = program.rsplit('/').next().unwrap_or(program);
    match name {
        "eval" => RunBy::Script(arguments.join(" ")),
        // An alias is another name for a command; in some shells also in scripts.
        "." | "source" | "alias" => RunBy::Unknown,
        "trap" => {
            let action = arguments.iter().find(|word| !word.starts_with('-'));
            action.map_or(RunBy::Nothing, |action| RunBy::Script(action.clone()))
        }
        "find" => {
            let starts = arguments.iter().enumerate().filter(|(_, word)| is_action(word));
            let commands: Vec<Vec<String>> =
                starts.filter_map(|(at, _)| Some(arguments.get(at + 1..)?.to_vec())).collect();
            if commands.is_empty() { RunBy::Nothing } else { RunBy::Commands(commands) }
        }
        _ if SHELLS.contains(&name) => run_by_shell(arguments),
        _ if WRAPPERS.contains(&name) => run_by_wrapper(name, arguments),
        _ => RunBy::Nothing,
    }
}

fn is_action(word: &str) -> bool {
    FIND_ACTIONS.contains(&word)
}

fn run_by_shell(arguments: &[String]) -> RunBy {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.strip_prefix(['-', '+']) {
            Some(options) if !options.starts_with('-') && options.contains('c') => {
                // Further options may stand between it and the script.
                let script = rest.find(|word| !word.starts_with('-'));
                return script.map_or(RunBy::Unknown, |script| RunBy::Script(script.clone()));
            }
            Some("o" | "O") => {
                rest.next();
            }
            Some("-version" | "-help") => return RunBy::Nothing,
            Some(_) => {}
            // A script file.
            None => return RunBy::Unknown,
        }
    }
    RunBy::Input
}

fn run_by_wrapper(name: &str, arguments: &[String]) -> RunBy {
    let mut commands = Vec::new();
    let mut after_option = false;
    for (at, word) in arguments.iter().enumerate() {
        if let Some(script) = split_string(name, word, arguments.get(at + 1)) {
            return RunBy::Script(script);
        }
        let is_option = word.starts_with('-');
        if !is_option && !super::is_assignment(word) && !is_amount(word) {
            commands.push(arguments[at..].to_vec());
            // Behind an option it may be that option's argument; the command then follows.
            if !after_option {
                break;
            }
        }
        after_option = is_option;
    }
    let reads_more = matches!(name, "xargs" | "parallel");
    if reads_more && commands.iter().any(|command| runs_its_arguments(command)) {
        // What it runs is in the input.
        return RunBy::Unknown;
    }
    if commands.is_empty() { RunBy::Nothing } else { RunBy::Commands(commands) }
}

/// Whether a command runs what its arguments say.
fn runs_its_arguments(command: &[String]) -> bool {
    let name = command.first().map_or("", |program| program.rsplit('/').next().unwrap_or(program));
    WRAPPERS.contains(&name) || SHELLS.contains(&name) || name == "find"
}

/// The script of an option that takes one: `env -S`, `watch` and `flock -c`.
fn split_string(name: &str, word: &str, next: Option<&String>) -> Option<String> {
    match (name, word) {
        ("env", "-S" | "--split-string") | ("flock", "-c" | "--command") => next.cloned(),
        ("env", _) => {
            let joined = word.strip_prefix("--split-string=").or_else(|| word.strip_prefix("-S"));
            joined.map(str::to_owned)
        }
        // `watch` passes its arguments to a shell.
        ("watch", _) if word.contains(' ') => Some(word.to_owned()),
        _ => None,
    }
}

/// A number or a duration, such as a niceness or a time limit.
fn is_amount(word: &str) -> bool {
    let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))
}
