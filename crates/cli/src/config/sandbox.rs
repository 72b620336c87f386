//! What the configuration says about the sandbox of commands.

use std::path::{Path, PathBuf};

use fusee::engine::approval::rules;
use fusee::engine::run::SandboxOptions;
use fusee::engine::tools::host_proxy::HostRules;
use fusee::engine::tools::sandbox::{Network, ResourceLimits};
use fusee::engine::tools::tool::computer::DisplayNumber;

use super::{Config, Value};
use crate::process::environment::Environment;

impl Config {
    /// Sandbox permissions and limits beyond the defaults.
    pub(crate) fn sandbox_options(&self, environment: &Environment) -> SandboxOptions {
        let home = environment.text("HOME").unwrap_or("/");
        let paths = |key: &str| match self.values.get(key) {
            Some((Value::List(paths), _)) => {
                let whole = |path: &String| match path.strip_prefix("~/") {
                    Some(rest) => Path::new(home).join(rest),
                    None => PathBuf::from(path),
                };
                paths.iter().map(whole).collect()
            }
            _ => Vec::new(),
        };
        let usual = ResourceLimits::defaults();
        let hosts = HostRules {
            allow: self.names("network.allow"),
            ask: matches!(self.value("network.ask"), Some((Value::Switch(true), _))),
        };
        let mut read: Vec<PathBuf> = paths("sandbox.read");
        read.extend(self.display().map(DisplayNumber::socket));
        read.extend(self.display().and_then(|_| environment.x_authority()));
        SandboxOptions {
            network: match self.text("sandbox.network") {
                Some("on") => Network::Machine,
                _ if !hosts.is_empty() => Network::Hosts,
                _ => Network::Own,
            },
            hosts,
            read,
            write: paths("sandbox.write"),
            limits: ResourceLimits {
                cpu_s: self.whole("sandbox.cpu_s").unwrap_or(usual.cpu_s),
                memory_bytes: self.whole("sandbox.memory_mb").map_or(usual.memory_bytes, |mb| mb << 20),
                processes: self.whole("sandbox.processes").unwrap_or(usual.processes),
                file_bytes: self.whole("sandbox.file_mb").map_or(usual.file_bytes, |mb| mb << 20),
            },
            untrusted_flow: self.has_untrusted_commands(),
            denied_programs: rules::denied_programs(&self.rules),
            ..SandboxOptions::default()
        }
    }
}
