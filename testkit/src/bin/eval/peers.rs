//! The other tools: where each comes from, and how it is started so that it can show what it can do.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::method::{Tools, each};
use crate::proxy::Proxy;
use crate::suite::Exercise;

/// Another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Aider,
    Goose,
    MiniSweAgent,
}

impl Peer {
    pub(crate) const ALL: [Self; 3] = [Self::Aider, Self::Goose, Self::MiniSweAgent];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Aider => "aider",
            Self::Goose => "goose",
            Self::MiniSweAgent => "mini-swe-agent",
        }
    }

    /// Packages with the versions that were measured.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Aider => &["aider-chat==0.86.2"],
            Self::Goose => &["@aaif/goose@0.20.1"],
            // Its client library imports mcp without depending on it.
            Self::MiniSweAgent => &["mini-swe-agent==2.4.6", "mcp==2.3.0"],
        }
    }

    /// Its program below the folder of peers.
    fn program(self, peers: &Path) -> PathBuf {
        let folder = peers.join(self.name());
        match self {
            Self::Aider => folder.join("bin/aider"),
            Self::Goose => folder.join("node_modules/.bin/goose"),
            Self::MiniSweAgent => folder.join("bin/mini"),
        }
    }

    /// Prints the version; mini-swe-agent has no flag for it.
    pub(crate) fn version_command(self, peers: &Path) -> Vec<OsString> {
        if self != Self::MiniSweAgent {
            return vec![self.program(peers).into(), "--version".into()];
        }
        let script = "from importlib.metadata import version; print(version('mini-swe-agent'))";
        vec![peers.join(self.name()).join("bin/python").into(), "-c".into(), script.into()]
    }

    /// Command line and environment. Temperature 0 where a tool does not choose it itself.
    pub(crate) fn invocation(
        self,
        exercise: &Exercise,
        tools: &Tools<'_>,
        proxy: &Proxy,
    ) -> (Vec<OsString>, Vec<(String, OsString)>) {
        let request = exercise.request();
        let model = format!("openai/{}", tools.model);
        let mut words: Vec<OsString> = vec![self.program(tools.peers).into()];
        let variable = |name: &str, value: &str| (name.to_owned(), OsString::from(value));
        // The prices of hosted models, which the client library of two tools would download first.
        let local_prices = variable("LITELLM_LOCAL_MODEL_COST_MAP", "True");
        let environment = match self {
            Self::Aider => {
                let fixed = "--edit-format whole --no-git --yes-always --auto-test --no-auto-lint --map-tokens 0 \
                             --no-pretty --no-check-update --no-show-release-notes --no-analytics \
                             --no-show-model-warnings --no-detect-urls --no-suggest-shell-commands";
                words.extend(["--model".into(), model.into()]);
                words.extend(["--openai-api-base".into(), proxy.base_url().into()]);
                words.extend(["--openai-api-key".into(), "none".into()]);
                words.extend(fixed.split_whitespace().map(Into::into));
                words.extend(["--test-cmd".into(), exercise.test_command.as_str().into()]);
                words.extend(["--message".into(), request.into()]);
                words.extend(each("--read", &exercise.tests));
                words.extend(exercise.solution.iter().map(Into::into));
                vec![local_prices]
            }
            Self::Goose => {
                words
                    .extend(["run", "--no-session", "--with-builtin", "developer", "--text"].map(Into::into));
                words.push(self_test(exercise, &request).into());
                vec![
                    variable("GOOSE_PROVIDER", "openai"),
                    variable("GOOSE_MODEL", tools.model),
                    variable("GOOSE_MODE", "auto"),
                    variable("GOOSE_TEMPERATURE", "0"),
                    variable("GOOSE_DISABLE_KEYRING", "1"),
                    variable("GOOSE_TELEMETRY_ENABLED", "false"),
                    variable("OPENAI_HOST", &proxy.origin()),
                    variable("OPENAI_API_KEY", "none"),
                ]
            }
            Self::MiniSweAgent => {
                // Commands in fenced blocks: a small model is better at them than at tool calls.
                let settings = [
                    "mini_textbased.yaml".to_owned(),
                    format!("model.model_kwargs.api_base={}", proxy.base_url()),
                    "model.model_kwargs.api_key=none".to_owned(),
                    "model.model_kwargs.temperature=0".to_owned(),
                ];
                words.extend(settings.into_iter().flat_map(|setting| ["-c".into(), setting.into()]));
                words.extend(["--model".into(), model.into(), "--yolo".into(), "--exit-immediately".into()]);
                words.extend(["--task".into(), self_test(exercise, &request).into()]);
                // The price of a local model is unknown, which is an error unless it is expected.
                vec![
                    variable("MSWEA_CONFIGURED", "true"),
                    variable("MSWEA_COST_TRACKING", "ignore_errors"),
                    local_prices,
                ]
            }
        };
        (words, environment)
    }
}

/// The request for a tool that has no setting for a test command.
fn self_test(exercise: &Exercise, request: &str) -> String {
    format!("{request} Run the tests with `{}`.", exercise.test_command)
}

/// Installs the tools that are missing; reports every failure.
pub(crate) fn install(peers: &Path) -> Outcome {
    let failures: Vec<String> =
        Peer::ALL.into_iter().filter_map(|peer| install_one(peer, peers).err()).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

fn install_one(peer: Peer, peers: &Path) -> Outcome {
    let folder = peers.join(peer.name());
    if peer.program(peers).exists() {
        println!("{}: installed", peer.packages().join(" "));
        return Ok(());
    }
    let run = |program: &Path, args: &[&str]| {
        let status = Command::new(program).args(args).status();
        let status = status.map_err(|error| format!("{}: {error}", program.display()))?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("{} {}: {status}", program.display(), args.join(" ")))
        }
    };
    let target = folder.to_string_lossy();
    std::fs::create_dir_all(&folder).map_err(|error| format!("{target}: {error}"))?;
    if peer == Peer::Goose {
        let npm = ["install", "--no-fund", "--no-audit", "--prefix", &target];
        return run(Path::new("npm"), &[&npm, peer.packages()].concat());
    }
    run(Path::new("python3"), &["-m", "venv", &target])?;
    let pip = ["-m", "pip", "install", "--quiet"];
    run(&folder.join("bin/python"), &[&pip, peer.packages()].concat())
}
