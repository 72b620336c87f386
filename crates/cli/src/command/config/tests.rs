//! Output of `fusee config`.

use insta::assert_snapshot;

use super::*;
use crate::config::Value as Held;
use crate::process::environment::Environment;

fn gathered() -> Config {
    let environment = Environment::made_of(&[("FUSEE_MAX_TURNS", "7")], "/");
    Config::gather(None, &environment, vec![("model", Held::Text("ollama:m".into()))]).unwrap()
}

#[test]
fn every_key_is_listed_with_its_value_and_its_origin() {
    assert_snapshot!(listing(&gathered(), &KEYS.iter().collect::<Vec<_>>()));
}

#[test]
fn one_key_is_explained() {
    assert_snapshot!(description(&gathered(), Key::named("max_turns").unwrap()));
}

#[test]
fn json_has_the_same() {
    let value = as_json(&gathered(), &[Key::named("model").unwrap(), Key::named("top_p").unwrap()]);
    assert_eq!(
        value["keys"],
        json!([
            {"key": "model", "value": "ollama:m", "origin": "flag", "from": "--model"},
            {"key": "top_p", "value": null, "origin": null, "from": null},
        ])
    );
}
