//! Locating the files of requests that name none.

use super::*;

/// The located files with their reasons, and the tests.
fn found(request: &str, failure: Option<&str>, files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let workspace = Arc::new(Workspace::open(directory.path()).unwrap());
    let failure = failure.map(|text| text.replace("ROOT", directory.path().to_str().unwrap()));
    let Located { targets, tests } = locate(request, &workspace, failure.as_deref());
    (targets.into_iter().map(|file| format!("{}: {}", file.path, file.reason)).collect(), tests)
}

/// A project with more sources than can be shown.
fn shop() -> Vec<(&'static str, &'static str)> {
    vec![
        ("shop/cart.py", "class Cart:\n    def total_price(self):\n        return 0\n"),
        ("shop/price.py", "def net(gross):\n    return gross\n"),
        ("shop/stock.py", "def count():\n    return 1\n"),
        ("shop/mail.py", "def send():\n    pass\n"),
        ("shop/users.py", "def login():\n    pass\n"),
        ("shop/orders.py", "from shop.price import net\n\ndef place():\n    return net(1)\n"),
        ("shop/reports.py", "def monthly():\n    pass\n"),
        ("tests/test_cart.py", "from shop.cart import Cart\n"),
        ("tests/test_orders.py", "from shop import orders\n"),
    ]
}

#[test]
fn failing_tests_lead_to_the_files_in_their_stack_and_imports() {
    let output = "Traceback (most recent call last):\n  File \"ROOT/tests/test_orders.py\", line 5, in test_place\n  \
        File \"ROOT/shop/orders.py\", line 4, in place\n  File \"ROOT/shop/price.py\", line 2, in net\n\
        AssertionError: 1 != 2\n  File \"/usr/lib/python3/unittest/case.py\", line 1\n";
    let (targets, tests) = found("fix the failing test", Some(output), &shop());
    assert_eq!(
        targets,
        [
            "shop/orders.py: in the output of the failing tests",
            "shop/price.py: in the output of the failing tests"
        ]
    );
    assert_eq!(tests, ["tests/test_orders.py"]);
}

#[test]
fn a_test_without_a_stack_leads_to_what_it_imports() {
    let output = "tests/test_cart.py:7: AssertionError\n";
    let (targets, tests) = found("make the tests pass", Some(output), &shop());
    assert_eq!(targets, ["shop/cart.py: used by tests/test_cart.py"]);
    assert_eq!(tests, ["tests/test_cart.py"]);
}

#[test]
fn a_fault_may_be_in_what_the_tested_file_uses() {
    let files = [
        ("shop/__init__.py", ""),
        ("shop/cart.py", "from shop.price import with_tax\n"),
        ("shop/price.py", "def with_tax(cents):\n    return cents\n"),
        ("shop/mail.py", "def send():\n    pass\n"),
        ("tests/test_cart.py", "from shop.cart import Cart\n"),
    ];
    let (targets, _) = found("fix the failing test", Some("tests/test_cart.py:7: AssertionError\n"), &files);
    assert_eq!(targets, ["shop/cart.py: used by tests/test_cart.py", "shop/price.py: used by shop/cart.py"]);
}

#[test]
fn names_in_the_request_lead_to_their_definition() {
    let (targets, tests) = found("total_price ignores discounts", None, &shop());
    assert_eq!(targets, ["shop/cart.py: defines `total_price`"]);
    assert_eq!(tests, ["tests/test_cart.py"]);
    let (targets, _) = found("the stock is counted twice", None, &shop());
    assert_eq!(targets, ["shop/stock.py: named in the request"]);
}

#[test]
fn a_named_file_is_the_only_target() {
    let (targets, _) = found("fix shop/mail.py", Some("shop/price.py:1: error"), &shop());
    assert_eq!(targets, ["shop/mail.py: named in the request"]);
}

#[test]
fn a_small_project_is_shown_whole_if_nothing_else_is_known() {
    let (targets, _) = found("make it faster", None, &[("a.py", "x = 1\n"), ("b.py", "y = 2\n")]);
    assert_eq!(
        targets,
        [
            "a.py: one of only a few source files in the project",
            "b.py: one of only a few source files in the project"
        ]
    );
}
