//! Every promise of SECURITY.md names the tests that prove it, and these exist.

use std::collections::BTreeSet;

use super::{assert_none, files, read, rust_files};

/// What the page must have promises about.
const ASSETS: [&str; 9] = [
    "files outside: writing",
    "files outside: reading",
    "keys",
    "network",
    "other processes",
    "git",
    "terminal",
    "journal",
    "approvals",
];

/// Words in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Cells of the rows of the table of promises.
fn promises(page: &str) -> Vec<Vec<&str>> {
    let (_, rest) = page.split_once("## Promises by asset").unwrap();
    let rows = rest.lines().take_while(|line| !line.starts_with("## "));
    let rows = rows.filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn every_promise_of_the_security_page_names_tests_that_exist() {
    let page = read("SECURITY.md");
    let rows = promises(&page);
    let missing = |asset: &&&str| !rows.iter().any(|row| row[0].starts_with(**asset));
    assert_none(
        "assets without a promise",
        &ASSETS.iter().filter(missing).map(|asset| (*asset).to_owned()).collect::<Vec<_>>(),
    );

    let files: BTreeSet<String> = files().into_iter().collect();
    let code: Vec<String> = rust_files()
        .iter()
        .filter(|file| !file.ends_with("security_page.rs"))
        .map(|file| read(file))
        .collect();
    let is_a_test = |name: &str| {
        let [function, attempt] = [format!("fn {name}("), format!("\"{name}\"")];
        code.iter().any(|text| text.contains(&function) || text.contains(&attempt))
    };
    let is_there = |named: &str| match named.strip_prefix("cargo xtask ") {
        Some(command) => read("xtask/src/main.rs").contains(&format!("Some(\"{command}\")")),
        None if named.ends_with(".rs") => {
            files.contains(named) || files.contains(&format!("crates/tools/tests/confined/{named}"))
        }
        None => is_a_test(named),
    };
    let unproven = rows.iter().filter(|row| row.len() != 5 || quoted(row[4]).next().is_none());
    assert_none("promises without a test", &unproven.map(|row| row.join(" | ")).collect::<Vec<_>>());
    let gone = rows.iter().flat_map(|row| quoted(row[4])).filter(|named| !is_there(named));
    assert_none("tests that SECURITY.md names and nobody has", &gone.map(str::to_owned).collect::<Vec<_>>());
    // Files of the code, in the other columns and in the text.
    let paths = quoted(&page).filter(|word| word.contains('/') && word.ends_with(".rs"));
    let gone = paths.filter(|path| !files.contains(*path));
    assert_none("files that SECURITY.md names and nobody has", &gone.map(str::to_owned).collect::<Vec<_>>());
}
