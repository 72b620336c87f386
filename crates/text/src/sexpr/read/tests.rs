//! Trees and diagnostics of valid, invalid and hostile texts.

use insta::assert_snapshot;

use super::*;
use crate::render;

/// The tree in one line per root, then the diagnostics as `line:column-line:column code message`.
fn outcome(text: &str) -> String {
    let source = Source::new("t", text);
    let (tree, problems) = read(&source);
    let mut out = String::new();
    for root in tree.roots() {
        show(&tree, *root, &mut out);
        out.push('\n');
    }
    for d in problems.into_sorted() {
        out.push_str(&format!("{}-{} {} {}", d.start, d.end, d.code, d.message));
        out.push_str(&d.help.map_or(String::new(), |help| format!(" [{help}]")));
        out.push('\n');
    }
    out
}

fn show(tree: &Tree, node: NodeId, out: &mut String) {
    match tree.kind(node) {
        NodeKind::List => {
            out.push('(');
            for (index, item) in tree.items(node).iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                show(tree, *item, out);
            }
            out.push(')');
        }
        NodeKind::Quote => {
            out.push('\'');
            show(tree, tree.items(node)[0], out);
        }
        NodeKind::Symbol => out.push_str(&format!("sym:{}", tree.text(node))),
        NodeKind::Keyword => out.push_str(&format!("key:{}", tree.text(node))),
        NodeKind::String => out.push_str(&format!("{:?}", tree.text(node))),
        kind => out.push_str(&format!("{kind:?}")),
    }
}

#[test]
fn every_kind_of_expression() {
    assert_snapshot!(outcome("\u{feff}(system:read_files string=? \"a\\n\" 12 -3 +4 0.5 -1e3 true false nil 'x :limit () ->) ; c\n&rest"), @r#"
    (sym:system:read_files sym:string=? "a\n" Int(12) Int(-3) Int(4) Float(0.5) Float(-1000.0) Bool(true) Bool(false) Nil 'sym:x key:limit () sym:->)
    sym:&rest
    "#);
}

#[test]
fn names_may_hold_signs_and_letters_of_any_script() {
    assert_snapshot!(outcome("(- + -x +a a1 日本 λ? list->string <= ... .x & a.b a:b)"), @"(sym:- sym:+ sym:-x sym:+a sym:a1 sym:日本 sym:λ? sym:list->string sym:<= sym:... sym:.x sym:& sym:a.b sym:a:b)");
}

#[test]
fn strings_have_the_escapes_of_json_and_may_span_lines() {
    assert_snapshot!(outcome(r#"("\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00" "two
lines" "")"#), @r#"("\"\\/\u{8}\u{c}\n\r\té😀" "two\nlines" "")"#);
}

#[test]
fn wrong_escapes_are_each_reported() {
    assert_snapshot!(outcome(r#"("\q \u12 \ud83d x \udc00" "\u{41}")"#), @r#"
    ("� � � x �" "�{41}")
    1:3-1:5 bad-escape `\q` is not a valid escape [valid escapes are \" \\ \/ \b \f \n \r \t and \u1234]
    1:6-1:10 bad-escape `\u12` is not a valid escape [\u needs four hexadecimal digits]
    1:11-1:17 bad-escape `\ud83d` is not a valid escape [write a character above U+FFFF directly or as two escapes, as in \ud83d\ude00]
    1:20-1:26 bad-escape `\udc00` is not a valid escape [write a character above U+FFFF directly or as two escapes, as in \ud83d\ude00]
    1:29-1:31 bad-escape `\u` is not a valid escape [\u needs four hexadecimal digits]
    "#);
}

#[test]
fn wrong_numbers_and_names_are_each_reported() {
    assert_snapshot!(outcome("(9223372036854775807 9223372036854775808 -9223372036854775808 1e400 .5 1. 1a 0x10 : #t)"), @r"
    (Int(9223372036854775807) Unreadable Int(-9223372036854775808) Unreadable Unreadable Unreadable Unreadable Unreadable Unreadable Unreadable)
    1:22-1:41 bad-number `9223372036854775808` is not a number [integers have 64 bits; write a larger number as a float, as in 1e30]
    1:63-1:68 bad-number `1e400` is not a number [the largest number is about 1.8e308]
    1:69-1:71 bad-number `.5` is not a number [a decimal point needs digits on both sides, as in 0.5]
    1:72-1:74 bad-number `1.` is not a number [a decimal point needs digits on both sides, as in 0.5]
    1:75-1:77 bad-number `1a` is not a number [names cannot start with a digit; numbers are written like 12, -3, 0.5 or 1e9]
    1:78-1:82 bad-number `0x10` is not a number [names cannot start with a digit; numbers are written like 12, -3, 0.5 or 1e9]
    1:83-1:84 bad-name `:` is not a name [a keyword needs a name, as in :limit]
    1:85-1:87 bad-name `#t` is not a name [booleans are written true and false; # syntax is not supported]
    ");
}

#[test]
fn characters_outside_the_language_are_skipped() {
    assert_snapshot!(outcome("(a [b] {c} `d ,e \u{1b} f)"), @r"
    (sym:a sym:b sym:c sym:d sym:e sym:f)
    1:4-1:5 unexpected-character unexpected character `[` [lists are written with ( and ), maps with (dict key value …)]
    1:6-1:7 unexpected-character unexpected character `]` [lists are written with ( and ), maps with (dict key value …)]
    1:8-1:9 unexpected-character unexpected character `{` [lists are written with ( and ), maps with (dict key value …)]
    1:10-1:11 unexpected-character unexpected character `}` [lists are written with ( and ), maps with (dict key value …)]
    1:12-1:13 unexpected-character unexpected character ``` [quasiquote is not supported; build the list with (list …)]
    1:15-1:16 unexpected-character unexpected character `,` [quasiquote is not supported; build the list with (list …)]
    1:18-1:19 unexpected-character unexpected control character U+001B [control characters are not allowed]
    ");
}

#[test]
fn stray_and_missing_parentheses_are_reported_together() {
    assert_snapshot!(outcome("(a))\n(b ')\n(c (d\n"), @r"
    (sym:a)
    (sym:b Unreadable)
    (sym:c (sym:d))
    1:4-1:5 unexpected-close unmatched `)` [remove it or add the missing `(`]
    2:4-2:5 bare-quote `'` is not followed by an expression
    3:1-3:2 unclosed-list this list and 1 more inside it are not closed [add the missing `)`]
    ");
}

#[test]
fn a_form_at_the_margin_hints_at_the_forgotten_parenthesis() {
    assert_snapshot!(outcome("(defun f (x)\n  (g x)\n\n(defun h () 1)\n"), @r"
    (sym:defun sym:f (sym:x) (sym:g sym:x) (sym:defun sym:h () Int(1)))
    1:1-1:2 unclosed-list this list is not closed [line 4 starts a form at the left margin; a `)` is probably missing before it]
    ");
}

#[test]
fn an_unclosed_string_ends_with_its_line_and_the_rest_is_read() {
    assert_snapshot!(outcome("(a \"b)\n(c \\\" d)\n[e"), @r#"
    (sym:a Unreadable (sym:c sym:\ Unreadable sym:e))
    1:1-1:2 unclosed-list this list and 1 more inside it are not closed [line 2 starts a form at the left margin; a `)` is probably missing before it]
    1:4-1:7 unclosed-string this string is not closed [close it with "; a quote inside a string is written \"]
    2:5-2:9 unclosed-string this string is not closed [close it with "; a quote inside a string is written \"]
    3:1-3:2 unexpected-character unexpected character `[` [lists are written with ( and ), maps with (dict key value …)]
    "#);
}

#[test]
fn a_control_character_in_a_string_is_reported() {
    assert_snapshot!(outcome("\"a\u{1b}[0m\tb\""), @r#"
    "a\u{1b}[0m\tb"
    1:3-1:4 control-character control character U+001B in a string [write it as \u001b]
    "#);
}

#[test]
fn every_node_knows_its_place() {
    let source = Source::new("t", "(ä 'b\n  (c))");
    let (tree, _) = read(&source);
    let places: Vec<String> = tree
        .all()
        .map(|node| {
            let (start, end) = source.positions(tree.span(node));
            format!("{start}-{end} {}", source.slice(tree.span(node)).replace('\n', "⏎"))
        })
        .collect();
    assert_eq!(
        places,
        ["1:1-2:7 (ä 'b⏎  (c))", "1:2-1:3 ä", "1:4-1:6 'b", "1:5-1:6 b", "2:3-2:6 (c)", "2:4-2:5 c"]
    );
}

#[test]
fn two_hundred_thousand_open_parentheses_are_one_problem() {
    let source = Source::new("t", "(".repeat(200_000));
    let (tree, problems) = read(&source);
    assert_eq!(tree.len(), 200_000);
    let problems = problems.into_sorted();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].message, "this list and 199999 more inside it are not closed");
    assert!(render::terminal(&problems, |_| Some(&source), render::Colour::Never).len() < 2000);
}

#[test]
fn two_hundred_thousand_closed_lists_and_quotes_are_fine() {
    let deep = format!("{}{}", "(".repeat(200_000), ")".repeat(200_000));
    let (tree, problems) = read(&Source::new("t", deep));
    assert_eq!((tree.len(), problems.len()), (200_000, 0));
    let quotes = format!("{}x", "'".repeat(200_000));
    let (tree, problems) = read(&Source::new("t", quotes));
    assert_eq!((tree.len(), problems.len()), (200_001, 0));
    let bare = "'".repeat(200_000);
    let (_, problems) = read(&Source::new("t", bare));
    assert_eq!(problems.len(), 1);
}

#[test]
fn a_string_of_a_hundred_megabytes_is_read_without_a_copy() {
    let source = Source::new("t", format!("\"{}\"", "x".repeat(100_000_000)));
    let (tree, problems) = read(&source);
    assert_eq!((problems.len(), tree.text(tree.roots()[0]).len()), (0, 100_000_000));
    assert!(tree.decoded.is_empty());
}

#[test]
fn hostile_texts_take_linear_time() {
    // Inputs on which a reader that rescans would take quadratic time.
    let escaped_quotes = "\\\" ".repeat(300_000);
    let comments_in_quotes = format!("{}{}", "'".repeat(100_000), ";\n".repeat(100_000));
    let stray = ")".repeat(300_000);
    for text in [format!("\"{escaped_quotes}"), comments_in_quotes, stray] {
        let (_, problems) = read(&Source::new("t", text));
        assert!(problems.has_errors());
        assert!(problems.into_sorted().len() <= Diagnostics::CAPACITY + 1);
    }
}

#[test]
fn a_text_past_the_limit_is_refused() {
    let source = Source::new("t", " ".repeat(MAX_BYTES + 1));
    let (tree, problems) = read(&source);
    assert!(tree.is_empty());
    assert_eq!(problems.into_sorted()[0].code, "text-too-long");
}
