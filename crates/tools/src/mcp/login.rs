//! Login at a server over HTTP: OAuth with PKCE. The user logs in with a browser, which is sent back to an address of
//! this process; the token is kept in a file that only the user can read, and renewed when it expires.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthClient, AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, CredentialStore,
    OAuthClientConfig, OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest, StoredCredentials,
};
use serde_json::Value;

use super::failure::{RequestFailure, shortened};
use super::http::HttpClient;

/// Maximum bytes of a response of an authorization server.
const MAX_BYTES: usize = 1 << 20;

/// Why a login failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoginError(String);

impl From<AuthError> for LoginError {
    fn from(error: AuthError) -> Self {
        Self(shortened(&error.to_string()))
    }
}

/// A client that the user has registered at the authorization server, where clients cannot register themselves.
#[derive(Clone, PartialEq, Eq)]
pub struct RegisteredClient {
    /// Id of the client.
    pub id: String,
    /// Secret of the client, if it has one.
    pub secret: Option<String>,
}

impl std::fmt::Debug for RegisteredClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RegisteredClient").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A login in progress.
pub struct Login(AuthorizationSession);

impl std::fmt::Debug for Login {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Login").finish_non_exhaustive()
    }
}

impl Login {
    /// Begins a login at the server with this URL. The browser will be sent to `redirect`; `file` will hold the token.
    /// Without a `registered` client a new one is registered.
    pub async fn start(
        url: &str,
        client: &reqwest::Client,
        file: &Path,
        redirect: &str,
        registered: Option<&RegisteredClient>,
    ) -> Result<Self, LoginError> {
        let mut manager = manager(url, client, file).await?;
        let metadata = manager.resolve_metadata().await?;
        if !metadata.source.is_discovered() {
            return Err(LoginError("the server does not say where to log in".to_owned()));
        }
        manager.set_metadata(metadata.metadata);
        let mut request =
            AuthorizationRequest::new(redirect).with_client_name("Fusee").with_initial_scope_selection();
        if let Some(RegisteredClient { id, secret }) = registered.cloned() {
            request = request.with_preregistered_client(id);
            request.client_secret = secret;
        }
        let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| error)?;
        Ok(Self(session))
    }

    /// The address at which the user logs in.
    #[must_use]
    pub fn address(&self) -> &str {
        self.0.get_authorization_url()
    }

    /// Completes the login with the address that the browser was sent to, and keeps the token.
    pub async fn finish(self, redirected: &str) -> Result<(), LoginError> {
        self.0.handle_callback_url(redirected).await?;
        Ok(())
    }
}

/// The tokens in a file, which must be redacted; none if there is no login.
#[must_use]
pub fn stored_tokens(file: &Path) -> Vec<String> {
    let kept = std::fs::read(file).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    let token =
        |name: &str| kept.as_ref()?.pointer(&format!("/token_response/{name}"))?.as_str().map(str::to_owned);
    ["access_token", "refresh_token"].into_iter().filter_map(token).collect()
}

/// A client that sends the token in `file`.
pub(super) async fn client(
    url: &str,
    client: &reqwest::Client,
    file: &Path,
    registered: Option<&RegisteredClient>,
) -> Result<AuthClient<HttpClient>, RequestFailure> {
    let mut manager = manager(url, client, file).await.map_err(|error| failure(&error))?;
    let is_logged_in = manager.initialize_from_store().await.map_err(|error| failure(&error))?;
    // The file has no secret; without it the token of such a client cannot be renewed.
    if let (true, Some(RegisteredClient { id, secret: Some(secret) })) = (is_logged_in, registered) {
        let client = OAuthClientConfig::new(id, url).with_client_secret(secret);
        manager.configure_client(client).map_err(|error| failure(&error))?;
    }
    Ok(AuthClient::new(HttpClient(client.clone()), manager))
}

/// Why a token cannot be used.
pub(super) fn failure(error: &AuthError) -> RequestFailure {
    match error {
        AuthError::AuthorizationRequired | AuthError::TokenExpired | AuthError::TokenRefreshRejected(_) => {
            RequestFailure::LoginRequired
        }
        other => RequestFailure::Gone(shortened(&other.to_string())),
    }
}

async fn manager(
    url: &str,
    client: &reqwest::Client,
    file: &Path,
) -> Result<AuthorizationManager, AuthError> {
    let http = Arc::new(LoginHttp(client.clone()));
    let mut manager = AuthorizationManager::new_with_oauth_http_client(url, http).await?;
    manager.set_credential_store(TokenFile(file.to_owned()));
    Ok(manager)
}

/// Requests to an authorization server. The client follows no redirects, so that a token request cannot be diverted.
struct LoginHttp(reqwest::Client);

impl OAuthHttpClient for LoginHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let mut sent = reqwest::Request::try_from(request.request)?;
            *sent.timeout_mut() = request.timeout;
            let mut response = self.0.execute(sent).await?;
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await? {
                if body.len() + chunk.len() > MAX_BYTES {
                    return Err(format!("the response has more than {MAX_BYTES} bytes").into());
                }
                body.extend_from_slice(&chunk);
            }
            Ok(http::Response::from(response).map(|_| body))
        })
    }
}

/// The file that keeps a token.
struct TokenFile(PathBuf);

#[async_trait]
impl CredentialStore for TokenFile {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        match std::fs::read(&self.0) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| self.error(&error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.error(&error)),
        }
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let text = serde_json::to_vec(&credentials).map_err(|error| self.error(&error))?;
        let new = self.0.with_extension("new");
        let write = || {
            let mut options = std::fs::OpenOptions::new();
            // A file that somebody else prepared would keep its mode.
            let _ = std::fs::remove_file(&new);
            options.write(true).create_new(true).mode(0o600).open(&new)?.write_all(&text)?;
            std::fs::rename(&new, &self.0)
        };
        write().map_err(|error| self.error(&error))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(self.error(&error)),
            _ => Ok(()),
        }
    }
}

impl TokenFile {
    fn error(&self, error: &dyn std::error::Error) -> AuthError {
        AuthError::CredentialStoreError(format!("{}: {error}", self.0.display()))
    }
}
