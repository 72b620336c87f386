//! Resolving names to servers, and API keys only to the servers they belong to.

use super::*;

fn resolve(
    name: &str,
    overrides: ConnectionOverrides,
    variables: &[(&str, &str)],
) -> Result<ResolvedModel, ResolveError> {
    let secrets = |name: &str| {
        variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| OsString::from(value))
    };
    Connection::resolve(name, &overrides, &secrets)
}

fn at(url: &str) -> ConnectionOverrides {
    ConnectionOverrides { base_url: Some(url.to_owned()), ..ConnectionOverrides::default() }
}

fn key_of(resolved: &ResolvedModel) -> Option<&str> {
    resolved.connection.api_key.as_ref().map(Secret::reveal)
}

#[test]
fn a_hosted_model_has_its_providers_wire_profile_price_and_key() {
    for (name, variable, wire) in [
        ("openai:gpt-5", "OPENAI_API_KEY", Wire::Responses),
        ("anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY", Wire::Anthropic),
        ("groq:llama-3.3-70b-versatile", "GROQ_API_KEY", Wire::Chat),
    ] {
        let resolved = resolve(name, ConnectionOverrides::default(), &[(variable, " sk-1 ")]).unwrap();
        assert_eq!((resolved.connection.wire, key_of(&resolved)), (wire, Some("sk-1")), "{name}");
        assert!(resolved.provider.is_some(), "{name}");
        assert!(resolved.price.is_some(), "{name} has a price");
        let given = ConnectionOverrides { api_key: Some(Secret::new("mine")), ..Default::default() };
        assert_eq!(key_of(&resolve(name, given, &[]).unwrap()), Some("mine"));
    }
}

#[test]
fn a_key_does_not_go_to_a_server_it_does_not_belong_to() {
    let variables = [("OPENAI_API_KEY", "sk-secret-1"), ("GROQ_API_KEY", "gsk-secret")];
    assert_eq!(key_of(&resolve("some-model", at("http://10.0.0.1:9/v1"), &variables).unwrap()), None);
    let groq = resolve("some-model", at("https://api.groq.com/openai/v1"), &variables).unwrap();
    assert_eq!(key_of(&groq), Some("gsk-secret"));
    // Naming the provider means that the key belongs to this server.
    let named = resolve("openai:m", at("http://10.0.0.1:9/v1"), &variables).unwrap();
    assert_eq!(key_of(&named), Some("sk-secret-1"));
}

#[test]
fn what_is_missing_is_an_error_of_its_own_kind() {
    let missing = |name: &str| resolve(name, ConnectionOverrides::default(), &[]).unwrap_err();
    assert!(
        matches!(missing("openai:gpt"), ResolveError::MissingKey { variable, .. } if variable == "OPENAI_API_KEY")
    );
    assert!(matches!(missing("gpt"), ResolveError::NoServer { model } if model == "gpt"));
    assert!(matches!(missing("local"), ResolveError::NoFile));
    assert!(matches!(missing("openai:"), ResolveError::Open(OpenError::Name(_))));
    // A self-hosted server may need no key, but a key that was asked for must be there.
    assert!(resolve("openai:gpt", at("http://127.0.0.1:1/v1"), &[]).is_ok());
    let own = ConnectionOverrides { api_key_variable: Some("BOX".to_owned()), ..at("http://127.0.0.1:1/v1") };
    assert!(
        matches!(resolve("m", own, &[]), Err(ResolveError::MissingKey { variable, .. }) if variable == "BOX")
    );
}

#[test]
fn a_password_in_a_url_is_refused_without_being_repeated() {
    let variables = [("OPENAI_BASE_URL", "http://me:hunter22@host/v1")];
    let error = resolve("openai:m", ConnectionOverrides::default(), &variables).unwrap_err();
    assert!(matches!(error, ResolveError::Url { problem: UrlError::Credentials, .. }));
    assert!(!format!("{error} {error:?}").contains("hunter22"));
}

#[test]
fn a_proxy_is_for_other_machines() {
    let variables = [("HTTPS_PROXY", "http://proxy:1"), ("http_proxy", "http://proxy:2")];
    let proxy_of = |url: &str| resolve("m", at(url), &variables).unwrap().connection.proxy;
    assert_eq!(proxy_of("https://api.example/v1").as_deref(), Some("http://proxy:1"));
    assert_eq!(proxy_of("http://box/v1").as_deref(), Some("http://proxy:2"));
    for own in ["http://127.0.0.1:8080/v1", "http://localhost/v1", "http://[::1]:8000/v1"] {
        assert_eq!(proxy_of(own), None);
    }
}

#[test]
fn overrides_precede_what_is_known() {
    let overrides = ConnectionOverrides {
        wire: Some(Wire::Chat),
        tool_format: Some(ToolFormat::Text),
        context_tokens: Some(4096),
        price: Some(Price { input: 1.0, output: 2.0, ..Price::default() }),
        api_key: Some(Secret::new("k")),
        profiles: Some(("mine".to_owned(), "[[profile]]\ntemperature = 0.5\n".to_owned())),
        ..ConnectionOverrides::default()
    };
    let resolved = resolve("openai:gpt-5", overrides, &[]).unwrap();
    let Connection { wire, traits, .. } = resolved.connection;
    assert_eq!(
        (wire, traits.tool_format, resolved.context_tokens),
        (Wire::Chat, ToolFormat::Text, Some(4096))
    );
    assert_eq!(resolved.price.unwrap().output, 2.0);
    assert_eq!(resolved.options(RequestOptions::default()).temperature, Some(0.5));
    let asked = RequestOptions { temperature: Some(1.0), ..RequestOptions::default() };
    assert_eq!(resolved.options(asked).temperature, Some(1.0));
}
