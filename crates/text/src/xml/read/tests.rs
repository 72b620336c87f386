//! Documents that are read, and diagnostics with their positions.

use super::super::{XmlContent, decode};
use super::*;

fn problems(text: &str) -> Vec<String> {
    let source = Source::new("t.xml", text);
    let (_, problems) = read(&source);
    problems.into_iter().map(|p| format!("{} {}: {}", p.start, p.code, p.message)).collect()
}

fn outline(text: &str) -> String {
    fn show(document: &XmlDocument, id: ElementId, out: &mut String) {
        let element = document.element(id);
        out.push_str(&element.name);
        for attribute in &element.attributes {
            out.push_str(&format!("[{}={:?}]", attribute.name, attribute.value));
        }
        out.push('(');
        for content in &element.content {
            match content {
                XmlContent::Text { text, .. } => out.push_str(&format!("{text:?}")),
                XmlContent::Element(child) => show(document, *child, out),
            }
        }
        out.push(')');
    }
    let (document, problems) = read(&Source::new("t.xml", text));
    assert!(problems.is_empty(), "{problems:?}");
    let mut out = String::new();
    show(&document, document.root().unwrap(), &mut out);
    out
}

#[test]
fn elements_attributes_text_and_what_stands_between() {
    let text = "<?xml version=\"1.0\"?>\n<!-- c --><a x='1' y = \"&lt;2&#x41;\n\">t&amp;<b/> <![CDATA[<raw> & \r\n]]>u\r\nv<!-- d -->w</a>\n";
    assert_eq!(outline(text), r#"a[x="1"][y="<2A "]("t&"b()" <raw> & \nu\nvw")"#);
}

#[test]
fn every_mistake_is_reported_with_its_place() {
    let text = "<a x=1 y>\n <b>&nope; & <\n  <c></b>\n</d>\n</a>\n<e/>";
    assert_eq!(
        problems(text),
        [
            "1:6 xml-attribute: the value of `x` is not quoted",
            "1:8 xml-attribute: the attribute `y` has no value",
            "2:5 xml-reference: unknown entity `&nope;`",
            "2:12 xml-reference: `&` does not start a reference",
            "2:14 xml-text: `<` does not start a tag here",
            "3:3 xml-unclosed: `<c>` is not closed before `</b>`",
            "4:1 xml-unopened: `</d>` has no matching start tag",
            "6:1 xml-second-root: second root element `<e>`; a file has exactly one",
        ]
    );
}

#[test]
fn dtds_and_their_entities_are_refused() {
    let bomb = "<!DOCTYPE a [<!ENTITY x \"&y;&y;\"> <!ENTITY y '>'>]>\n<a>&x;</a>";
    assert_eq!(
        problems(bomb),
        [
            "1:1 xml-dtd: DTDs and entity declarations are not allowed",
            "2:4 xml-reference: unknown entity `&x;`",
        ]
    );
}

#[test]
fn what_never_ends_is_reported_once() {
    assert_eq!(
        problems("<a><!-- x"),
        ["1:1 xml-unclosed: `<a>` is never closed", "1:4 xml-unclosed: this comment is never closed"]
    );
    assert_eq!(problems(""), ["1:1 xml-empty: the file contains no element"]);
    assert_eq!(
        problems("words"),
        [
            "1:1 xml-text-outside: text outside the root element",
            "1:6 xml-empty: the file contains no element"
        ]
    );
    assert_eq!(problems("<a b=\"1><c/></a>").len(), 2);
}

#[test]
fn characters_that_xml_has_not_are_reported() {
    assert_eq!(problems("<a>\0</a>"), ["1:4 xml-character: character U+0000 is not allowed in XML"]);
    assert_eq!(problems("<a>&#0;</a>"), ["1:4 xml-reference: `&#0;` is not a valid XML character"]);
    assert_eq!(problems("<a>&#xD800;</a>"), ["1:4 xml-reference: `&#xD800;` is not a valid XML character"]);
}

#[test]
fn depth_and_number_are_bounded() {
    let deep = "<a>".repeat(100_000);
    let (document, problems) = read(&Source::new("t.xml", deep));
    assert_eq!(document.len(), MAX_DEPTH);
    assert_eq!(problems.len(), MAX_DEPTH + 1);
    let wide = format!("<a>{}</a>", "<b/>".repeat(100_000));
    let (document, problems) = read(&Source::new("t.xml", wide));
    assert_eq!((document.len(), problems.len()), (MAX_ELEMENTS, 1));
    let (document, problems) = read(&Source::new("t.xml", " ".repeat(LARGEST + 1)));
    assert_eq!((document.len(), problems.len()), (0, 1));
}

#[test]
fn encodings_are_told_apart() {
    assert_eq!(decode(b"\xEF\xBB\xBF<a/>").unwrap(), "<a/>");
    assert_eq!(decode(b"\xFF\xFE<\0a\0/\0>\0").unwrap(), "<a/>");
    assert_eq!(decode(b"\xFE\xFF\0<\0a\0/\0>").unwrap(), "<a/>");
    let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xE9</a>";
    assert!(decode(latin).unwrap().ends_with("<a>\u{e9}</a>"));
    assert_eq!(decode(b"<a>\xE9</a>").unwrap_err(), "invalid UTF-8 at byte 4; save the file as UTF-8");
    assert!(decode(b"<?xml version=\"1.0\" encoding=\"KOI8-R\"?><a/>").unwrap_err().contains("`koi8-r`"));
}

#[test]
fn what_is_over_a_bound_is_told_as_that() {
    let attributes: String = (0..300).map(|n| format!(" a{n}=\"\"")).collect();
    let (_, problems) = read(&Source::new("t.xml", format!("<a{attributes}/>")));
    let output: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(output, ["`<a` has more than 256 attributes; the rest is ignored"]);
    let (_, problems) = read(&Source::new("t.xml", " ".repeat(4 * LARGEST + 1)));
    let output: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(output, ["the file is too large: more than 4 MiB, at most 1 MiB are allowed"]);
}
