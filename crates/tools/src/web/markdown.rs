//! HTML to Markdown. The page is first rewritten with html5ever's tokenizer into balanced HTML of a bounded depth with
//! the few elements that Markdown has; htmd converts that. Neither the memory nor the stack that the conversion takes
//! then depends on how a hostile page nests its elements.

use std::cell::RefCell;

use htmd::HtmlToMarkdown;
use htmd::options::{BrStyle, BulletListMarker, HrStyle, Options};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use reqwest::Url;

/// Maximum depth of nested elements; deeper ones are left out, their text is not.
const MAX_DEPTH: usize = 48;
/// Maximum characters of a title.
const MAX_TITLE: usize = 200;

/// Elements that are kept; every other one is left out, but not its text.
const KEPT: [&str; 24] = [
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "p",
    "ul",
    "ol",
    "li",
    "blockquote",
    "pre",
    "code",
    "em",
    "strong",
    "a",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "del",
    "div",
];
/// Elements that begin a new block, like `div`.
const BLOCKS: [&str; 15] = [
    "address",
    "article",
    "aside",
    "dd",
    "details",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "main",
    "section",
];
/// Elements whose content is left out.
const LEFT_OUT: [&str; 10] =
    ["head", "svg", "math", "template", "object", "select", "canvas", "audio", "video", "nav"];

/// Converts a page; links become absolute by the address of the page. Returns its title and its text.
pub(crate) fn to_markdown(html: &str, address: &Url) -> (Option<String>, String) {
    let rewriter = Rewriter(RefCell::new(Rewrite::new(address)));
    let tokenizer = Tokenizer::new(rewriter, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(html));
    // Only scripts pause the tokenizer, and this sink never asks for that.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    let mut rewrite = tokenizer.sink.0.into_inner();
    rewrite.close_to(0);
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        hr_style: HrStyle::Dashes,
        br_style: BrStyle::Backslash,
        ..Options::default()
    };
    let converter = HtmlToMarkdown::builder().options(options).build();
    let text = converter.convert(&rewrite.html).unwrap_or_default();
    let title = rewrite.title.split_whitespace().collect::<Vec<_>>().join(" ");
    let title: String = title.chars().take(MAX_TITLE).collect();
    ((!title.is_empty()).then_some(title), text)
}

struct Rewriter(RefCell<Rewrite>);

/// A page as rewritten so far.
struct Rewrite {
    address: Url,
    html: String,
    open: Vec<&'static str>,
    /// The element whose content is left out, and how often it is open.
    left_out: Option<(String, u32)>,
    title: String,
    in_title: bool,
}

impl TokenSink for Rewriter {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut rewrite = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(text) => rewrite.text(&text),
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return rewrite.start(&tag),
            Token::TagToken(tag) => rewrite.end(&tag.name),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

impl Rewrite {
    fn new(address: &Url) -> Self {
        let address = address.clone();
        let (html, title) = (String::new(), String::new());
        Self { address, html, open: Vec::new(), left_out: None, title, in_title: false }
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            // Bounded: the rest of a title is not shown anyway.
            let room = (8 * MAX_TITLE).saturating_sub(self.title.len());
            self.title.extend(text.chars().take(room));
        } else if self.left_out.is_none() {
            escape(text, &mut self.html);
        }
    }

    fn start(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        let raw = match name {
            "script" => Some(RawKind::ScriptData),
            "style" | "xmp" | "iframe" | "noembed" | "noframes" | "noscript" => Some(RawKind::Rawtext),
            "textarea" | "title" => Some(RawKind::Rcdata),
            _ => None,
        };
        if let Some(raw) = raw {
            self.in_title = name == "title" && self.title.is_empty();
            if !self.in_title && self.left_out.is_none() {
                self.left_out = Some((name.to_owned(), 1));
            }
            return TokenSinkResult::RawData(raw);
        }
        // The end tag of a head may be missing.
        if name == "body" && self.left_out.as_ref().is_some_and(|(left_out, _)| left_out == "head") {
            self.left_out = None;
        }
        if let Some((left_out, count)) = &mut self.left_out {
            if *left_out == name && !tag.self_closing {
                *count += 1;
            }
        } else if LEFT_OUT.contains(&name) {
            if !tag.self_closing {
                self.left_out = Some((name.to_owned(), 1));
            }
        } else {
            self.start_shown(name, tag);
        }
        TokenSinkResult::Continue
    }

    fn start_shown(&mut self, name: &str, tag: &Tag) {
        match name {
            "br" | "hr" => self.html.push_str(&format!("<{name}>")),
            _ => {}
        }
        let Some(kept) = kept_name(name) else { return };
        match kept {
            "li" => self.close_last(&["li"], &["ul", "ol"]),
            "tr" => self.close_last(&["tr"], &["table"]),
            "td" | "th" => self.close_last(&["td", "th"], &["table"]),
            "em" | "strong" | "code" | "del" => {}
            // A link in a link ends the first one.
            "a" => self.close_last(&["a"], &[]),
            _ => self.close_last(&["p"], &["td", "th", "li", "blockquote"]),
        }
        if self.open.len() >= MAX_DEPTH {
            self.html.push(' ');
            return;
        }
        let link = (kept == "a").then(|| self.link(tag)).flatten();
        match link {
            Some(link) => {
                self.html.push_str("<a href=\"");
                escape(&link, &mut self.html);
                self.html.push_str("\">");
            }
            None if kept == "a" => return,
            None => self.html.push_str(&format!("<{kept}>")),
        }
        self.open.push(kept);
    }

    fn end(&mut self, name: &str) {
        if name == "title" {
            self.in_title = false;
        }
        if let Some((left_out, count)) = &mut self.left_out {
            if left_out == name {
                *count -= 1;
                if *count == 0 {
                    self.left_out = None;
                }
            }
            return;
        }
        if let Some(kept) = kept_name(name)
            && let Some(at) = self.open.iter().rposition(|open| *open == kept)
        {
            self.close_to(at);
        }
    }

    /// Closes the innermost of these elements, unless one of `within` is further in.
    fn close_last(&mut self, names: &[&str], within: &[&str]) {
        let found = self.open.iter().rposition(|open| names.contains(open) || within.contains(open));
        if let Some(at) = found.filter(|at| names.contains(&self.open[*at])) {
            self.close_to(at);
        }
    }

    /// Closes elements until `depth` are open.
    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth
            && let Some(name) = self.open.pop()
        {
            self.html.push_str(&format!("</{name}>"));
        }
    }

    /// The address that a link leads to, if it is one of the web and not of the page itself.
    fn link(&self, tag: &Tag) -> Option<String> {
        let href = tag.attrs.iter().find(|attribute| &*attribute.name.local == "href")?;
        let href = href.value.trim();
        let address = self.address.join(href).ok()?;
        let is_web = matches!(address.scheme(), "http" | "https" | "mailto");
        (is_web && !href.starts_with('#')).then(|| address.to_string())
    }
}

/// The name under which an element is kept.
fn kept_name(name: &str) -> Option<&'static str> {
    let name = match name {
        "b" => "strong",
        "i" | "cite" | "dfn" => "em",
        "kbd" | "samp" | "tt" => "code",
        "s" | "strike" => "del",
        "menu" => "ul",
        _ if BLOCKS.contains(&name) => "div",
        _ => name,
    };
    KEPT.iter().find(|kept| **kept == name).copied()
}

fn escape(text: &str, html: &mut String) {
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            _ => html.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(html: &str) -> String {
        to_markdown(html, &Url::parse("https://a.org/docs/page").unwrap()).1
    }

    #[test]
    fn a_page_becomes_markdown() {
        let html = "<!doctype html><html><head><title>A &amp; B\n page</title><style>p{}</style></head><body>\
            <nav><a href=/home>Home</a></nav><h1>Head<em>ing</em></h1><p>One <b>bold</b> &lt;word&gt; and \
            <a href='../x?y=1'>a link</a>.<p>Two<br>lines<ul><li>first<li>second<ul><li>inner</ul></ul>\
            <pre><code>fn main() {}\n  x</code></pre><table><tr><th>k<th>v<tr><td>1<td>2</table>\
            <script>if (1 < 2) { alert('<p>no</p>') }</script><a href='javascript:x()'>plain</a></body></html>";
        let (title, text) = to_markdown(html, &Url::parse("https://a.org/docs/page").unwrap());
        assert_eq!(title.as_deref(), Some("A & B page"));
        insta::assert_snapshot!(text, @r"
        # Head*ing*

        One **bold** \<word> and [a link](https://a.org/x?y=1).

        Two\
        lines

        - first
        - second
          - inner

        ```
        fn main() {}
          x
        ```

        | k | v |
        | - | - |
        | 1 | 2 |

        plain
        ");
    }

    #[test]
    fn hostile_nesting_costs_neither_stack_nor_memory() {
        let deep = "<div><b><i a=1>".repeat(200_000) + "end";
        assert!(converted(&deep).contains("end"));
        let fonts: String = (0..500).map(|n| format!("<b a={n}>")).collect();
        let rebuilt = format!("<p>{fonts}</p>{}", "<p>x</p>".repeat(50_000));
        assert!(converted(&rebuilt).len() < 1 << 20);
        assert!(converted(&"<table><tr><td>".repeat(100_000)).len() < 1 << 20);
        assert!(converted(&"<svg>".repeat(100_000)).is_empty());
        let lists = "<ul><li>".repeat(50_000) + "x";
        assert!(converted(&lists).contains('x'));
    }

    #[test]
    fn what_is_not_closed_ends_with_the_page() {
        assert_eq!(converted("<p>a<script>"), "a");
        assert_eq!(converted("<head><title>t"), "");
        assert_eq!(converted("</p></div>plain"), "plain");
    }
}
