//! Which values are redacted and which are not.

use super::*;

fn clean(secrets: &Secrets, text: &str) -> String {
    let mut text = text.to_owned();
    secrets.remove_from(&mut text);
    text
}

#[test]
fn every_place_of_every_secret_is_masked() {
    let secrets = Secrets::new(["sk-0123456789", "sk-0123456789-long", "päss wörd!", "short", "  "]);
    assert_eq!(
        clean(&secrets, "a sk-0123456789 b sk-0123456789-long sk-0123456789sk-0123456789 päss wörd! short"),
        "a [redacted] b [redacted] [redacted][redacted] [redacted] short"
    );
}

#[test]
fn a_secret_is_found_in_json_too() {
    let secrets = Secrets::new(["quote\"and\nline"]);
    assert_eq!(clean(&secrets, r#"{"key":"quote\"and\nline"}"#), r#"{"key":"[redacted]"}"#);
}

#[test]
fn without_secrets_nothing_happens() {
    assert_eq!(clean(&Secrets::default(), "anything"), "anything");
    assert_eq!(format!("{:?}", Secrets::new(["0123456789"])), "Secrets(1)");
}
