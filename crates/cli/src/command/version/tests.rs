//! Tests of what `fusee --version --verbose` can list.

use super::FEATURES;

#[test]
fn every_feature_of_the_manifest_is_listed() {
    let manifest = include_str!("../../../Cargo.toml").parse::<toml::Table>().unwrap();
    let mut declared: Vec<&str> = manifest["features"]
        .as_table()
        .unwrap()
        .keys()
        .map(String::as_str)
        .filter(|name| *name != "default")
        .collect();
    declared.sort_unstable();
    let listed: Vec<&str> = FEATURES.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, declared);
}
