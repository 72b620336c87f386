//! Output of `fusee config`.

use insta::assert_snapshot;

use super::*;
use crate::config::Value as Held;
use crate::process::environment::Environment;

fn gathered() -> Config {
    let environment = Environment::from_variables(&[("FUSEE_MAX_TURNS", "7")], "/");
    Config::gather(None, &environment, vec![("model", Held::Text("ollama:m".into()))]).unwrap()
}

#[test]
fn every_key_is_listed_with_its_value_and_its_origin() {
    assert_snapshot!(listing(&gathered(), &KEYS.iter().collect::<Vec<_>>()).unwrap());
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

#[test]
fn the_file_of_all_keys_names_each_once_and_its_defaults_are_valid() {
    let text = commented_file();
    let keys = text.split(&format!("\n# {}: ", TABLES[0].title)).next().unwrap();
    let lines: Vec<&str> = keys.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    let entries: Vec<&str> = KEYS
        .iter()
        .map(|key| {
            let start = format!("{} = ", key.name);
            let named: Vec<&&str> = lines.iter().filter(|line| line.starts_with(&start)).collect();
            assert_eq!(named.len(), 1, "{}", key.name);
            *named[0]
        })
        .collect();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("fusee.toml");
    // The examples of the tables, without the comments, are valid as well.
    let examples: String = TABLES.iter().filter_map(|table| table.commented_example()).collect();
    let tables: Vec<&str> =
        examples.lines().map(|line| line.trim_start_matches("# ").trim_start_matches('#')).collect();
    let tables = tables.join("\n");
    std::fs::write(&file, &tables).unwrap();
    let environment = Environment::from_variables(&[("TRACKER_TOKEN", "t")], place.path());
    let config = Config::gather(Some(&file), &environment, Vec::new());
    assert!(config.is_ok(), "{tables}\n{config:?}");
    // `sandbox` is a word here and a table in `sandbox.network`, and so is `diagnostics`: a file has one or the other.
    let with_default: Vec<&str> = entries
        .into_iter()
        .filter(|line| {
            !line.contains('…') && !line.starts_with("sandbox = ") && !line.starts_with("diagnostics = ")
        })
        .collect();
    std::fs::write(&file, with_default.join("\n")).unwrap();
    let environment = Environment::from_variables(&[], place.path());
    let config = Config::gather(Some(&file), &environment, Vec::new());
    assert!(config.is_ok(), "{}\n{config:?}", with_default.join("\n"));
}
