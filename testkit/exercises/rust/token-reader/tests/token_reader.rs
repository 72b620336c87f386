use token_reader::{tokens, Token};

fn number(n: u64) -> Token {
    Token::Number(n)
}

fn name(text: &str) -> Token {
    Token::Name(text.to_string())
}

fn text(text: &str) -> Token {
    Token::Text(text.to_string())
}

fn symbol(text: &str) -> Token {
    Token::Symbol(text.to_string())
}

#[test]
fn numbers_and_symbols() {
    assert_eq!(tokens("12+(3)").unwrap(), [number(12), symbol("+"), symbol("("), number(3), symbol(")")]);
    assert_eq!(tokens(" \n").unwrap(), []);
}

#[test]
fn names() {
    assert_eq!(tokens("x1 + _long_name").unwrap(), [name("x1"), symbol("+"), name("_long_name")]);
    assert_eq!(tokens("2x").unwrap(), [number(2), name("x")]);
}

#[test]
fn texts() {
    assert_eq!(tokens(r#""a b" "" "say \"hi\" \\""#).unwrap(), [text("a b"), text(""), text(r#"say "hi" \"#)]);
    assert_eq!(tokens(r##""# no comment""##).unwrap(), [text("# no comment")]);
}

#[test]
fn comparisons() {
    assert_eq!(tokens("a<=b").unwrap(), [name("a"), symbol("<="), name("b")]);
    assert_eq!(tokens("< > = >= ==").unwrap(), ["<", ">", "=", ">=", "=="].map(symbol));
    assert_eq!(tokens("===").unwrap(), [symbol("=="), symbol("=")]);
}

#[test]
fn comments() {
    assert_eq!(tokens("1 # one\n2#two").unwrap(), [number(1), number(2)]);
}

#[test]
fn faults() {
    assert_eq!(tokens("1 + $"), Err(4));
    assert_eq!(tokens("ä ?"), Err(3));
    assert_eq!(tokens("1 \"abc"), Err(2));
    assert_eq!(tokens("\"a\\\""), Err(0));
}
