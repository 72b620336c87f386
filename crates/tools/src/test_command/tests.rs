//! Commands found in projects of every kind.

use super::*;

/// The commands for a project of these files.
fn commands(files: &[(&str, &str)], subjects: &[&str], tests: &[&str]) -> Vec<String> {
    let names: Vec<String> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
    let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
    let read = |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
    let found = test_commands(&names, &owned(subjects), &owned(tests), read);
    found.into_iter().map(|command| command.command).collect()
}

#[test]
fn the_table_is_read_and_every_marker_is_a_glob() {
    assert!(RUNNERS.len() >= 15);
    for runner in RUNNERS.iter() {
        assert!(GlobBuilder::new(&runner.marker).build().is_ok(), "{}", runner.marker);
    }
}

#[test]
fn each_kind_of_project_has_its_command() {
    let rows: &[(&[(&str, &str)], &str)] = &[
        (&[("Cargo.toml", "")], "cargo test"),
        (&[("go.mod", "")], "go test -v ./..."),
        (&[("pytest.ini", ""), ("a.py", "")], "python3 -m pytest -q"),
        (&[("pyproject.toml", "[tool.pytest.ini_options]")], "python3 -m pytest -q"),
        (&[("test_a.py", "import unittest\n")], "python3 -m unittest discover -p '*test*.py'"),
        (&[("test_a.py", "def test_a(): pass\n")], "python3 -m pytest -q"),
        (&[("package.json", r#"{"devDependencies":{"vitest":"3"}}"#)], "npx --no-install vitest run"),
        (
            &[("package.json", r#"{"scripts":{"test":"jest"},"devDependencies":{"jest":"29"}}"#)],
            "npx --no-install jest",
        ),
        (&[("package.json", r#"{"devDependencies":{"mocha":"10"}}"#)], "npx --no-install mocha"),
        (&[("a.test.mjs", "import test from 'node:test'")], "node --test"),
        (&[("package.json", r#"{"scripts":{"test": "x"}}"#), ("pnpm-lock.yaml", "")], "pnpm test"),
        (&[("package.json", r#"{"scripts":{"test": "x"}}"#), ("yarn.lock", "")], "yarn test"),
        (&[("package.json", r#"{"scripts":{"test": "x"}}"#)], "npm test --silent"),
        (&[("pom.xml", "")], "mvn -q -o test"),
        (&[("gradlew", ""), ("build.gradle", "")], "./gradlew --offline test"),
        (&[("build.gradle.kts", "")], "gradle --offline test"),
        (&[("spec/a_spec.rb", "")], "rspec"),
        (&[("A.csproj", "")], "dotnet test"),
        (&[("Makefile", "all:\n\ntest:\n\ttrue\n")], "make test"),
        (&[("Makefile", "check:\n\ttrue\n")], "make check"),
    ];
    for (files, command) in rows {
        assert_eq!(commands(files, &[], &[]).first().map(String::as_str), Some(*command), "{files:?}");
    }
    let cmake = commands(&[("CMakeLists.txt", "enable_testing()")], &[], &[]);
    assert!(cmake[0].ends_with("ctest --test-dir build --output-on-failure"), "{cmake:?}");
}

#[test]
fn package_markers_are_not_passed_as_tests() {
    let python: &[(&str, &str)] = &[
        ("pkg/a.py", ""),
        ("tests/__init__.py", ""),
        ("tests/conftest.py", ""),
        ("tests/test_a.py", "import unittest"),
    ];
    let named = ["tests/__init__.py", "tests/conftest.py", "tests/test_a.py"];
    let found = commands(python, &["pkg/a.py"], &named);
    assert!(found.contains(&"python3 -m unittest tests.test_a".to_owned()), "{found:?}");
    assert!(found.iter().all(|command| !command.contains("__init__")), "{found:?}");
    let found = commands(python, &["pkg/a.py"], &["tests/__init__.py"]);
    assert!(found.contains(&"python3 -m unittest discover -p '*test*.py'".to_owned()), "{found:?}");
}

#[test]
fn commands_are_narrowed_to_the_tests_that_matter() {
    let python: &[(&str, &str)] =
        &[("pkg/a.py", ""), ("tests/test_a.py", "import unittest"), ("tests/test_b.py", "")];
    assert_eq!(commands(python, &["pkg/a.py"], &["tests/test_a.py"])[0], "python3 -m unittest tests.test_a");
    let odd: &[(&str, &str)] = &[("test it's.py", "")];
    assert!(commands(odd, &[], &["test it's.py"]).is_empty());
    let odd: &[(&str, &str)] = &[("pytest.ini", ""), ("test it's.py", "")];
    assert_eq!(commands(odd, &[], &["test it's.py"])[0], r"python3 -m pytest -q 'test it'\''s.py'");
    let rust: &[(&str, &str)] = &[("Cargo.toml", ""), ("src/lib.rs", ""), ("tests/leap.rs", "")];
    assert_eq!(commands(rust, &["src/lib.rs"], &["tests/leap.rs"])[0], "cargo test --test leap");
    assert_eq!(commands(rust, &["src/lib.rs"], &["src/tests.rs"])[0], "cargo test");
    let go: &[(&str, &str)] = &[("go.mod", ""), ("leap/leap_test.go", "")];
    assert_eq!(commands(go, &[], &["leap/leap_test.go"])[0], "go test -v ./leap");
    let java: &[(&str, &str)] = &[("pom.xml", ""), ("src/test/java/ATest.java", "")];
    assert_eq!(commands(java, &[], &["src/test/java/ATest.java"])[0], "mvn -q -o test -Dtest=ATest");
}

#[test]
fn modules_in_a_folder_of_sources_are_found() {
    let files: &[(&str, &str)] = &[("src/shop/price.py", ""), ("tests/test_price.py", "import unittest")];
    let found = commands(files, &["src/shop/price.py"], &["tests/test_price.py"]);
    assert_eq!(found[0], "PYTHONPATH=src python3 -m unittest tests.test_price");
    let rust: &[(&str, &str)] = &[("Cargo.toml", ""), ("src/tools/a.py", "")];
    assert_eq!(commands(rust, &[], &[])[0], "cargo test");
}

#[test]
fn the_nearest_project_comes_first() {
    let files: &[(&str, &str)] = &[
        ("Cargo.toml", ""),
        ("web/package.json", r#"{"devDependencies":{"vitest":"3"}}"#),
        ("web/src/a.ts", ""),
    ];
    let found = commands(files, &["web/src/a.ts"], &[]);
    assert_eq!(found, ["cd web && npx --no-install vitest run", "cargo test"]);
}
