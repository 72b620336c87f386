//! What the configuration says about the web tools and about the checks of edited files.

use fusee::engine::run::WebSettings;
use fusee::engine::tools::diagnostics::DiagnosticSettings;
use fusee::engine::tools::sandbox::Network;
use fusee::engine::tools::web::{SearchService, SearchSettings};

use super::Config;
use crate::process::environment::Environment;
use crate::process::error::CliError;

impl Config {
    /// The web tools of a run whose commands have this network. A search service without its key is not offered.
    pub(crate) fn web(&self, network: Network) -> Result<WebSettings, CliError> {
        let search = self.search_settings()?;
        Ok(WebSettings {
            fetch: network != Network::Own,
            robots: self.word("web.robots").unwrap_or_default(),
            search,
        })
    }

    /// How edited files are checked, if they are.
    pub(crate) fn diagnostics(&self) -> Option<DiagnosticSettings> {
        let commands = self.texts("diagnostics.commands");
        let timeout_s = self.number("diagnostics.timeout_s").unwrap_or(2.0);
        (self.text("diagnostics") == Some("on")).then_some(DiagnosticSettings { commands, timeout_s })
    }

    fn search_settings(&self) -> Result<Option<SearchSettings>, CliError> {
        let Some(service) = self.word::<SearchService>("web_search.service") else { return Ok(None) };
        let url = self.text("web_search.url").or(service.default_url()).ok_or_else(|| {
            CliError::usage("web_search.service = \"searxng\" needs an address")
                .help("set web_search.url to that of an instance whose search.formats include json")
        })?;
        let variable = self.text("web_search.api_key_env").or(service.default_key_variable());
        let (url, key_variable) = (url.to_owned(), variable.map(str::to_owned));
        Ok(Some(SearchSettings { service, url, key_variable }))
    }
}

/// The key of a search service.
pub(crate) fn search_key(settings: &SearchSettings, environment: &Environment) -> Option<String> {
    let key = environment.text(settings.key_variable.as_deref()?)?.trim();
    (!key.is_empty()).then(|| key.to_owned())
}
