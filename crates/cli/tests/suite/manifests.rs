//! Rules of the manifests and of the project's pages: one compiler version, packages that are complete, an index that
//! lists every page.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).expect(file)
}

fn table(file: &str) -> toml::Table {
    read(file).parse().unwrap()
}

/// Paths below a folder of the repository, without generated and hidden ones.
fn below(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else {
                found.push(entry.strip_prefix(root()).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// Folders of the published packages.
fn packages() -> Vec<String> {
    let mut packages: Vec<String> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| format!("crates/{}", entry.unwrap().file_name().display()))
        .collect();
    packages.sort();
    packages
}

#[test]
fn the_minimum_compiler_is_the_one_that_everything_is_tested_with() {
    let minimum = table("Cargo.toml")["workspace"]["package"]["rust-version"].as_str().unwrap().to_owned();
    let toolchain = table("rust-toolchain.toml");
    assert_eq!(toolchain["toolchain"]["channel"].as_str(), Some(format!("{minimum}.0").as_str()));
    assert!(read("CONTRIBUTING.md").contains(&format!("Rust {minimum} or newer")));
}

#[test]
fn every_package_says_what_it_is() {
    for folder in packages() {
        let manifest = table(&format!("{folder}/Cargo.toml"));
        let package = manifest["package"].as_table().unwrap();
        for key in ["description", "keywords", "categories"] {
            assert!(package.contains_key(key), "{folder}: no {key}");
        }
        let keywords = package["keywords"].as_array().unwrap();
        assert!((1..=5).contains(&keywords.len()), "{folder}: a registry takes up to 5 keywords");
        let readme = read(&format!("{folder}/{}", package["readme"].as_str().unwrap()));
        let name = package["name"].as_str().unwrap();
        assert!(readme.starts_with(&format!("# {name}\n")), "{folder}: the readme is not about {name}");
    }
}

/// A file outside of its package would be missing where the package is built from a registry.
#[test]
fn packages_include_only_files_of_their_own() {
    let mut included = 0;
    for folder in packages() {
        for file in below(&format!("{folder}/src")).into_iter().filter(|file| file.ends_with(".rs")) {
            let text = read(&file);
            for rest in
                ["include_str!(\"", "include_bytes!(\""].iter().flat_map(|macro_| text.split(macro_).skip(1))
            {
                let path = root().join(&file).parent().unwrap().join(rest.split('"').next().unwrap());
                let path =
                    path.canonicalize().unwrap_or_else(|error| panic!("{file}: {}: {error}", path.display()));
                assert!(path.starts_with(root().join(&folder)), "{file} includes {}", path.display());
                included += 1;
            }
        }
    }
    assert!(included > 20, "only {included} included files were found");
}

#[test]
fn the_index_lists_every_page() {
    let index = read("docs/README.md");
    let pages: Vec<String> =
        below("docs").into_iter().chain(below("spec")).filter(|page| page.ends_with(".md")).collect();
    let missing: Vec<&String> = pages
        .iter()
        .filter(|page| *page != "docs/README.md")
        .filter(|page| {
            let link = page.strip_prefix("docs/").map_or_else(|| format!("../{page}"), str::to_owned);
            !index.contains(&format!("]({link})"))
        })
        .collect();
    assert!(missing.is_empty(), "docs/README.md does not list {missing:?}");
}
