//! The methods: tools that work on an exercise, each as a command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;
use crate::peers::Peer;
use crate::process::Confinement;
use crate::proxy::Proxy;
use crate::suite::Exercise;

/// A tool with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// One request, its files written as they are.
    Plain,
    Peer(Peer),
    /// Fusee under a name of its own.
    Fusee {
        name: String,
        environment: Vec<(String, OsString)>,
        flags: Vec<String>,
    },
}

/// Where the tools are, and the model they use.
pub(crate) struct Tools<'a> {
    pub(crate) fusee: &'a Path,
    pub(crate) peers: &'a Path,
    /// Name of the model on the server.
    pub(crate) model: &'a str,
    /// Fusee's provider for the server.
    pub(crate) provider: &'a str,
    /// Confinement of the tools that do not confine themselves.
    pub(crate) confinement: Confinement,
}

/// A command line with its environment.
pub(crate) struct Invocation {
    pub(crate) words: Vec<OsString>,
    pub(crate) environment: Vec<(String, OsString)>,
    pub(crate) confinement: Confinement,
}

impl Method {
    /// Parses `plain` or the name of a peer.
    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        if text == "plain" {
            return Ok(Self::Plain);
        }
        let peer = Peer::ALL.into_iter().find(|peer| peer.name() == text);
        let names = Peer::ALL.map(Peer::name).join(", ");
        peer.map(Self::Peer).ok_or_else(|| format!("unknown method `{text}`; use plain, {names} or --fusee"))
    }

    /// Parses `NAME=[VARIABLE=VALUE…] [FLAG…]`; `{test}` in a flag becomes the exercise's test command.
    pub(crate) fn parse_fusee(text: &str) -> Outcome<Self> {
        let (name, rest) = text.split_once('=').unwrap_or((text, ""));
        let is_name = |text: &str| {
            !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        if !is_name(name) || Self::parse(name).is_ok() {
            return Err(format!(
                "`{name}` cannot name a Fusee method; use letters, digits, `.`, `_` and `-`"
            ));
        }
        let mut words = rest.split_whitespace().peekable();
        let mut environment = Vec::new();
        while let Some((variable, value)) = words.peek().and_then(|word| word.split_once('=')) {
            if !variable.starts_with(|c: char| c.is_ascii_uppercase()) {
                break;
            }
            environment.push((variable.to_owned(), value.into()));
            words.next();
        }
        Ok(Self::Fusee { name: name.to_owned(), environment, flags: words.map(str::to_owned).collect() })
    }

    /// Name in results and tables.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Plain => "plain",
            Self::Peer(peer) => peer.name(),
            Self::Fusee { name, .. } => name,
        }
    }

    /// First line that the tool prints for `--version`; the error says how to get the tool.
    pub(crate) fn version(&self, tools: &Tools<'_>) -> Outcome<String> {
        let (words, advice) = match self {
            Self::Plain => return Ok("1 request".to_owned()),
            Self::Peer(peer) => (peer.version_command(tools.peers), "run `cargo xtask eval peers`"),
            Self::Fusee { .. } => {
                (vec![tools.fusee.into(), "--version".into()], "build it, or pass --fusee-binary")
            }
        };
        let program = words.first().cloned().unwrap_or_default();
        let output = Command::new(&program)
            .args(words.iter().skip(1))
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}; {advice}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let flags = match self {
            Self::Fusee { flags, environment, .. } => {
                let variables = environment.iter().map(|(name, value)| format!("{name}={}", value.display()));
                let words: Vec<String> = variables.chain(flags.iter().cloned()).collect();
                format!(" {}", words.join(" "))
            }
            _ => String::new(),
        };
        let version = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("unknown version");
        Ok(format!("{version}{flags}").trim_end().to_owned())
    }

    /// The command that works on an exercise in its working copy.
    pub(crate) fn invocation(
        &self,
        exercise: &Exercise,
        tools: &Tools<'_>,
        proxy: &Proxy,
    ) -> Outcome<Invocation> {
        let request = exercise.request();
        let (words, environment, confinement) = match self {
            Self::Plain => {
                let itself = std::env::current_exe().map_err(|error| error.to_string())?;
                let mut words: Vec<OsString> = vec![itself.into(), "plain".into()];
                words.extend(["--base-url".into(), proxy.base_url().into()]);
                words.extend(["--model".into(), tools.model.into(), "--request".into(), request.into()]);
                words.extend(each("--read", &exercise.tests));
                words.extend(exercise.solution.iter().map(Into::into));
                (words, Vec::new(), tools.confinement)
            }
            Self::Peer(peer) => {
                let (words, environment) = peer.invocation(exercise, tools, proxy);
                (words, environment, tools.confinement)
            }
            Self::Fusee { environment, flags, .. } => {
                let model = format!("{}:{}", tools.provider, tools.model);
                let mut words: Vec<OsString> = vec![tools.fusee.into(), "run".into(), request.into()];
                words.extend(["-m".into(), model.into(), "--base-url".into(), proxy.base_url().into()]);
                words.extend(flags.iter().map(|flag| flag.replace("{test}", &exercise.test_command).into()));
                (words, environment.clone(), Confinement::None)
            }
        };
        Ok(Invocation { words, environment, confinement })
    }
}

/// The flag before each file.
pub(crate) fn each(flag: &str, files: &[PathBuf]) -> Vec<OsString> {
    files.iter().flat_map(|file| [OsString::from(flag), file.into()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fusee_method_has_a_name_variables_and_flags() {
        let parsed = Method::parse_fusee("direct=FUSEE_TEMPERATURE=0 --flow direct --set a=b").unwrap();
        let Method::Fusee { name, environment, flags } = parsed else { panic!("{parsed:?}") };
        assert_eq!(name, "direct");
        assert_eq!(environment, [("FUSEE_TEMPERATURE".to_owned(), OsString::from("0"))]);
        assert_eq!(flags, ["--flow", "direct", "--set", "a=b"]);
    }

    #[test]
    fn names_are_unambiguous() {
        assert_eq!(Method::parse_fusee("auto").unwrap().name(), "auto");
        assert!(Method::parse_fusee("aider=--flow flat").is_err());
        assert!(Method::parse_fusee("a/b=").is_err());
        assert!(Method::parse("cursor").is_err());
        assert_eq!(Method::parse("goose").unwrap().name(), "goose");
    }
}
