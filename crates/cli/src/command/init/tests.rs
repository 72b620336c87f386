//! Creating a project twice.

use super::*;
use crate::config::Config;
use crate::process::environment::Environment;

#[test]
fn a_project_is_made_once_and_never_overwritten() {
    let place = tempfile::tempdir().unwrap();
    let first = make(place.path()).unwrap();
    assert_eq!(first.lines().filter(|line| line.starts_with("created ")).count(), 3, "{first}");
    fs::write(place.path().join("fusee.toml"), "max_turns = 7\n").unwrap();
    let second = make(place.path()).unwrap();
    assert_eq!(second.lines().filter(|line| line.starts_with("kept ")).count(), 3, "{second}");
    assert_eq!(fs::read_to_string(place.path().join("fusee.toml")).unwrap(), "max_turns = 7\n");
}

#[test]
fn the_template_is_a_valid_configuration_and_so_are_the_five_examples_in_it() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("fusee.toml");
    let environment = Environment::from_variables(&[], place.path());
    fs::write(&file, template()).unwrap();
    assert!(Config::gather(Some(&file), &environment, Vec::new()).is_ok());
    let examples: Vec<String> = template()
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|line| USEFUL.iter().any(|(name, _)| line.starts_with(&format!("{name} = "))))
        .map(str::to_owned)
        .collect();
    assert_eq!(examples.len(), 5, "{}", template());
    assert!(template().lines().all(|line| line.chars().count() <= 104), "{}", template());
    fs::write(&file, examples.join("\n")).unwrap();
    let config = Config::gather(Some(&file), &environment, Vec::new()).unwrap();
    for (name, _) in USEFUL {
        let (_, origin) = config.value(name).unwrap();
        assert!(origin.to_string().contains("fusee.toml"), "{name} comes from {origin}");
    }
}
