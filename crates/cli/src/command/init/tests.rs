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
fn the_template_is_a_valid_configuration_and_so_is_each_default_in_it() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("fusee.toml");
    let environment = Environment::made_of(&[], place.path());
    fs::write(&file, template()).unwrap();
    assert!(Config::gather(Some(&file), &environment, Vec::new()).is_ok());
    let uncommented: String = template()
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|line| KEYS.iter().any(|key| line.starts_with(&format!("{} = ", key.name))))
        .filter(|line| !line.contains('…') && !line.ends_with("\"\""))
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(&file, &uncommented).unwrap();
    let config = Config::gather(Some(&file), &environment, Vec::new());
    assert!(config.is_ok(), "{uncommented}\n{config:?}");
}
