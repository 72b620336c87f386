use settings_file::parse;

fn pairs(text: &str) -> Vec<(String, String)> {
    parse(text).unwrap().into_iter().collect()
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_string(), value.to_string())
}

#[test]
fn keys_and_values() {
    assert_eq!(pairs("name = Ada\nage=36\n"), [pair("age", "36"), pair("name", "Ada")]);
    assert_eq!(pairs("  a  =  b c  "), [pair("a", "b c")]);
}

#[test]
fn comments_and_empty_lines() {
    assert_eq!(pairs("# comment\n\n  # more\na = 1\n\n"), [pair("a", "1")]);
    assert_eq!(pairs(""), []);
}

#[test]
fn special_values() {
    assert_eq!(pairs("a =\nb = 1 = 2 # no comment"), [pair("a", ""), pair("b", "1 = 2 # no comment")]);
}

#[test]
fn later_values_win() {
    assert_eq!(pairs("a = 1\na = 2"), [pair("a", "2")]);
}

#[test]
fn sections() {
    let text = "a = 1\n[net]\nport = 80\n[ disk ]\nport = x\n";
    assert_eq!(pairs(text), [pair("a", "1"), pair("disk.port", "x"), pair("net.port", "80")]);
}

#[test]
fn faulty_lines() {
    assert_eq!(parse("a = 1\nb"), Err(2));
    assert_eq!(parse("# x\n\n = 1"), Err(3));
    assert_eq!(parse("[net\n"), Err(1));
    assert_eq!(parse("a = 1\n[]"), Err(2));
}
