//! Checks every source of models, and whether one can be used.

use fusee::engine::model::connection::provider::{PROVIDERS, Provider};
use fusee::engine::model::{ModelRef, has_local_models};

use super::{CheckState, DoctorCheck, probe};
use crate::config::Config;
use crate::model_selection;
use crate::model_selection::discovery::{self, DiscoveredModels};
use crate::process::environment::Environment;
use crate::ui::format;

/// Maximum number of a server's models that are named.
const NAMED: usize = 4;

/// Results of the model checks.
pub(crate) struct ModelChecks {
    pub(crate) findings: Vec<DoctorCheck>,
    /// Whether some model can answer.
    pub(crate) usable: bool,
    pub(crate) next: Vec<String>,
}

/// Runs the checks.
pub(crate) async fn check(config: &Config, environment: &Environment, quick: bool) -> ModelChecks {
    let found = discovery::probe_all(environment).await;
    let mut models = check_models(&found, config, environment);
    if !quick {
        let probed = probe::found(&found, config, environment).await;
        if config.text("model").is_none() {
            models.leave_out_broken(&found, &probed);
        }
        models.findings.extend(probed);
        // A local model is not discovered, so it is probed only if it is the configured one.
        if let Some(name) = config.text("model")
            && models.usable
            && is_local(name, config, environment)
        {
            models.findings.push(probe::ask(name, config, environment).await);
        }
    }
    models
}

impl ModelChecks {
    /// Does not count on models that did not answer a request, and suggests another.
    pub(super) fn leave_out_broken(&mut self, found: &DiscoveredModels, probed: &[DoctorCheck]) {
        let is_broken = |name: &String| {
            probed.iter().any(|check| check.name == *name && check.state == CheckState::Broken)
        };
        let servers: Vec<String> = served(found).into_iter().filter(|name| !is_broken(name)).collect();
        self.usable = !servers.is_empty() || !found.keys.is_empty();
        self.next = next(found, &servers, false, self.usable);
    }
}

/// The models of the servers that were found, as `-m` takes them.
fn served(found: &DiscoveredModels) -> Vec<String> {
    let models = found
        .servers
        .iter()
        .flat_map(|server| server.models.iter().map(|model| format!("{}:{model}", server.provider.name)));
    models.collect()
}

/// Evaluates what was found.
pub(crate) fn check_models(
    found: &DiscoveredModels,
    config: &Config,
    environment: &Environment,
) -> ModelChecks {
    let mut findings = Vec::new();
    let configured = config.text("model").map(|name| configured(name, config, environment));
    let works = configured.as_ref().is_none_or(|finding| finding.state == CheckState::Ready);
    let is_configured = configured.is_some();
    findings.extend(configured);
    findings.extend(PROVIDERS.iter().map(|provider| match provider.key_variable {
        Some(variable) => hosted(provider, variable, found),
        None => own(provider, found, &discovery::base_url(provider, environment)),
    }));
    findings.push(local());
    findings.push(DoctorCheck::new("script", CheckState::Ready, "-m script:FILE, replies written by hand"));
    findings.push(DoctorCheck::new("replay", CheckState::Ready, "-m replay:FILE, a recorded run"));
    let servers = served(found);
    let there = !servers.is_empty() || !found.keys.is_empty();
    let usable = if is_configured { works } else { there };
    ModelChecks { findings, usable, next: next(found, &servers, is_configured, usable) }
}

fn configured(name: &str, config: &Config, environment: &Environment) -> DoctorCheck {
    let from = config.value("model").map(|(_, origin)| origin.to_string()).unwrap_or_default();
    let opened = model_selection::named(name, config, environment)
        .and_then(|choice| model_selection::open(&choice, None).map(|_| choice));
    match opened {
        Ok(choice) => {
            let place = match ModelRef::parse(&choice.name) {
                Ok(ModelRef::Server { provider, .. }) => {
                    let own = provider.map(|provider| provider.base_url.to_owned());
                    choice
                        .connection
                        .base_url
                        .clone()
                        .or(own)
                        .map(|url| format!(" at {url}"))
                        .unwrap_or_default()
                }
                _ => String::new(),
            };
            DoctorCheck::new("configured", CheckState::Ready, format!("{name}{place} ({from})"))
        }
        Err(failure) => DoctorCheck::new(
            "configured",
            CheckState::Broken,
            format!("{name} ({from}): {}", failure.message),
        ),
    }
}

fn is_local(name: &str, config: &Config, environment: &Environment) -> bool {
    model_selection::named(name, config, environment)
        .is_ok_and(|choice| matches!(ModelRef::parse(&choice.name), Ok(ModelRef::Local(_))))
}

/// Models in this process.
fn local() -> DoctorCheck {
    if has_local_models() {
        DoctorCheck::new("local", CheckState::Ready, "-m local:FILE.gguf, a model in this process")
    } else {
        DoctorCheck::new(
            "local",
            CheckState::Absent,
            "not in this binary: cargo build --release --features local",
        )
    }
}

fn hosted(provider: &Provider, variable: &str, found: &DiscoveredModels) -> DoctorCheck {
    if found.keys.iter().any(|keyed| keyed.name == provider.name) {
        DoctorCheck::new(provider.name, CheckState::Ready, format!("{variable} is set"))
    } else {
        DoctorCheck::new(provider.name, CheckState::Absent, format!("{variable} is not set"))
    }
}

fn own(provider: &'static Provider, found: &DiscoveredModels, base_url: &str) -> DoctorCheck {
    let place = base_url.trim_start_matches("http://").trim_end_matches("/v1");
    match found.servers.iter().find(|server| server.provider.name == provider.name) {
        None => DoctorCheck::new(provider.name, CheckState::Absent, format!("no server at {place}")),
        Some(server) if server.models.is_empty() => {
            DoctorCheck::new(provider.name, CheckState::Broken, format!("server at {place} has no model"))
        }
        Some(server) => {
            let named: Vec<&str> = server.models.iter().take(NAMED).map(String::as_str).collect();
            let more = server.models.len() - named.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let count = format::count(server.models.len() as u64, "model");
            DoctorCheck::new(
                provider.name,
                CheckState::Ready,
                format!("{count} at {place}: {}{more}", named.join(", ")),
            )
        }
    }
}

fn next(found: &DiscoveredModels, servers: &[String], is_configured: bool, usable: bool) -> Vec<String> {
    match (usable, is_configured, servers, found.keys.as_slice()) {
        (true, true, ..) => vec!["fusee run 'your task'".to_owned()],
        (true, false, [only], _) => vec![format!("fusee run 'your task' (uses {only})")],
        (true, false, [first, ..], _) => vec![format!("fusee run -m {first} 'your task'")],
        (true, false, [], [first, ..]) => {
            vec![format!("fusee run -m {}:MODEL 'your task'", first.name)]
        }
        (false, true, ..) => {
            vec!["the configured model cannot be used: see above, or choose another with -m".to_owned()]
        }
        (_, false, [], _) => vec![
            "start a server (ollama, llama.cpp, LM Studio, vLLM), set an API key, or pass the URL of a server:"
                .to_owned(),
            "fusee run --base-url http://HOST:PORT/v1 -m MODEL 'your task'".to_owned(),
            "fusee demo needs no model".to_owned(),
        ],
        (false, false, [..], _) => Vec::new(),
    }
}
