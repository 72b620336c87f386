//! Addresses under and beside the version path, and what is never shown.

use std::time::SystemTime;

use super::*;

fn endpoint(base_url: &str) -> Endpoint {
    Endpoint::new(base_url, &Settings::default(), || SystemTime::UNIX_EPOCH).unwrap()
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
    assert_eq!(endpoint("http://user:hunter22@h:8/v1").blot("it is hunter22!"), "it is [key]!");
}
