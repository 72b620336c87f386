//! What tests use, by language.

use super::*;

#[test]
fn tests_lead_to_the_files_that_they_use() {
    let files = [
        "leap.py",
        "pkg/__init__.py",
        "pkg/dates.py",
        "src/price.ts",
        "lib/cart.js",
        "go/clock/clock.go",
        "go/other/other.go",
        "src/lib.rs",
        "src/parser.rs",
        "ruby/lib/bob.rb",
        "java/Leap.java",
    ]
    .map(str::to_owned);
    let sources: Vec<&String> = files.iter().collect();
    let rows: &[(&str, &str, &[&str])] = &[
        ("test_leap.py", "import unittest\nimport leap\n", &["leap.py"]),
        ("tests/test_x.py", "from pkg.dates import parse, Day\n", &["pkg/dates.py"]),
        ("tests/test_y.py", "from pkg import dates\n", &["pkg/__init__.py", "pkg/dates.py"]),
        ("src/price.test.ts", "import { total } from './price';\n", &["src/price.ts"]),
        ("test/cart.spec.js", "const cart = require(\"../lib/cart\");\n", &["lib/cart.js"]),
        ("go/clock/clock_test.go", "package clock\n", &["go/clock/clock.go"]),
        ("tests/parse.rs", "use demo::parser::parse;\n", &["src/parser.rs", "src/lib.rs"]),
        ("ruby/test/bob_test.rb", "require_relative '../lib/bob'\n", &["ruby/lib/bob.rb"]),
        ("java/LeapTest.java", "class LeapTest {}\n", &["java/Leap.java"]),
    ];
    for (test, text, expected) in rows {
        assert_eq!(used_by(test, text, &sources), *expected, "{test}");
    }
}
