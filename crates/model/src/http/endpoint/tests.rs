//! Addresses below and next to the version path, and redaction.

use std::time::SystemTime;

use super::*;

fn endpoint(base_url: &str) -> Endpoint {
    Endpoint::new(base_url, &Connection::default(), || SystemTime::UNIX_EPOCH).unwrap()
}

#[test]
fn paths_join_the_base_url_once() {
    let address = |base: &str, path: &str| endpoint(base).address(path).to_string();
    assert_eq!(address("http://h:1/v1", "chat/completions"), "http://h:1/v1/chat/completions");
    assert_eq!(address("http://h:1/v1/", "chat/completions"), "http://h:1/v1/chat/completions");
    assert_eq!(address("http://h:1/v1/chat/completions", "models"), "http://h:1/v1/models");
    assert_eq!(address("http://h:1", "models"), "http://h:1/models");
    assert_eq!(address("http://h/a/v1", "/props"), "http://h/a/props");
    assert_eq!(address("http://h/x", "/props"), "http://h/x/props");
    assert_eq!(
        address("https://h/deployments/d?api-version=2", "chat/completions"),
        "https://h/deployments/d/chat/completions?api-version=2"
    );
}

#[test]
fn an_address_is_shown_without_its_password() {
    assert_eq!(endpoint("http://user:hunter22@h:8/v1?key=k").shown, "http://h:8/v1");
    assert_eq!(endpoint("http://user:hunter22@h:8/v1").redact("it is hunter22!"), "it is [key]!");
}

#[test]
fn anthropics_address_holds_the_version_once_whatever_is_given() {
    let settings = Connection { wire: Wire::Anthropic, ..Connection::default() };
    for given in ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/", "http://h:1/v1/messages"] {
        let endpoint = Endpoint::new(given, &settings, || SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(endpoint.address(Wire::Anthropic.path()).as_str(), "http://h:1/v1/messages", "{given}");
    }
}

#[test]
fn a_key_goes_into_the_header_of_its_format() {
    let header = |wire: Wire, name: &str| {
        let settings = Connection { wire, api_key: Some(Secret::new("sk-1")), ..Connection::default() };
        let endpoint = Endpoint::new("http://h", &settings, || SystemTime::UNIX_EPOCH).unwrap();
        endpoint.headers.get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(header(Wire::Anthropic, "x-api-key").as_deref(), Some("sk-1"));
    assert_eq!(header(Wire::Anthropic, "anthropic-version").as_deref(), Some("2023-06-01"));
    assert_eq!(header(Wire::Anthropic, "authorization"), None);
    assert_eq!(header(Wire::Responses, "authorization").as_deref(), Some("Bearer sk-1"));
    assert_eq!(header(Wire::Chat, "x-api-key"), None);
}
