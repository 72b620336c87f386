//! What a file defines, by the grammar of its language. `symbols.rs` finds it line by line where there is no grammar here,
//! where a text does not parse, and where it is too long for that.
//!
//! Only the index comes here: a grammar's tables stay untouched on disk until the first file of its language is read.

use std::ops::ControlFlow;

use tree_sitter::{Language, Node, ParseOptions, Parser, Tree, TreeCursor};

/// Longer texts are not parsed: what people wrote is shorter, and what programs wrote defines little.
const LONGEST: usize = 128 * 1024;
/// How often a parse may report progress for this many bytes: a dozen times of what an ordinary text needs. A text that
/// drives a parser to try everything is left to the lines.
const BYTES_A_REPORT: usize = 16;
const REPORTS: usize = 256;
/// Nodes are not looked into deeper than this.
const DEEPEST: usize = 64;

/// How a language says that something is defined.
struct Grammar {
    language: fn() -> Language,
    /// Nodes whose field `name` is a symbol; what is inside of them is looked at too.
    named: &'static [&'static str],
    /// The same, and what is inside is nobody else's business.
    closed: &'static [&'static str],
    /// The same, outside of everything in `nest`.
    outermost: &'static [&'static str],
    /// What makes a thing belong to another one.
    nest: &'static [&'static str],
}

const RUST: Grammar = Grammar {
    language: || tree_sitter_rust::LANGUAGE.into(),
    named: &["trait_item", "mod_item", "struct_item", "enum_item", "union_item"],
    closed: &["function_item", "function_signature_item", "macro_definition"],
    outermost: &["type_item", "const_item", "static_item"],
    nest: &["impl_item", "trait_item"],
};

const PYTHON: Grammar = Grammar {
    language: || tree_sitter_python::LANGUAGE.into(),
    named: &["class_definition"],
    closed: &["function_definition"],
    outermost: &[],
    nest: &[],
};

/// JavaScript too: what its own grammar knows, this one knows.
const TYPESCRIPT: Grammar = Grammar {
    language: || tree_sitter_typescript::LANGUAGE_TSX.into(),
    named: &["class_declaration", "abstract_class_declaration", "interface_declaration", "internal_module"],
    closed: &[
        "function_declaration",
        "generator_function_declaration",
        "function_signature",
        "method_definition",
        "method_signature",
        "abstract_method_signature",
        "enum_declaration",
    ],
    outermost: &["variable_declarator", "type_alias_declaration"],
    nest: &["class_body", "arrow_function", "function_expression"],
};

const GO: Grammar = Grammar {
    language: || tree_sitter_go::LANGUAGE.into(),
    named: &["type_spec", "type_alias"],
    closed: &["function_declaration", "method_declaration"],
    outermost: &["const_spec", "var_spec"],
    nest: &["func_literal"],
};

const C: Grammar = Grammar {
    language: || tree_sitter_c::LANGUAGE.into(),
    named: &["struct_specifier", "union_specifier", "enum_specifier", "type_definition"],
    closed: &["function_definition", "preproc_function_def", "preproc_def"],
    outermost: &[],
    nest: &[],
};

const JAVA: Grammar = Grammar {
    language: || tree_sitter_java::LANGUAGE.into(),
    named: &[
        "class_declaration",
        "interface_declaration",
        "enum_declaration",
        "record_declaration",
        "annotation_type_declaration",
    ],
    closed: &["method_declaration", "constructor_declaration"],
    outermost: &[],
    nest: &[],
};

fn grammar(language: &str) -> Option<&'static Grammar> {
    Some(match language {
        "rust" => &RUST,
        "python" => &PYTHON,
        "javascript" | "typescript" => &TYPESCRIPT,
        "go" => &GO,
        "c" => &C,
        "java" => &JAVA,
        _ => return None,
    })
}

/// The names that a text defines, in its order; nothing where it cannot be told by a grammar.
pub(super) fn find<'t>(text: &'t str, language: &str) -> Option<Vec<&'t str>> {
    let grammar = grammar(language)?;
    if text.len() > LONGEST {
        return None;
    }
    let tree = parse(text, grammar)?;
    if tree.root_node().has_error() {
        return None;
    }
    let mut found = Vec::new();
    collect(&mut tree.walk(), text, grammar, &mut found);
    Some(found)
}

fn parse(text: &str, grammar: &Grammar) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&(grammar.language)()).ok()?;
    let mut left = REPORTS + text.len() / BYTES_A_REPORT;
    let mut progress = |_: &_| match left.checked_sub(1) {
        Some(rest) => {
            left = rest;
            ControlFlow::Continue(())
        }
        None => ControlFlow::Break(()),
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let mut read = |at: usize, _| text.as_bytes().get(at..).unwrap_or_default();
    parser.parse_with_options(&mut read, None, Some(options))
}

/// Goes through the tree without recursion: a text can nest as deep as it is long.
fn collect<'t>(cursor: &mut TreeCursor<'_>, text: &'t str, grammar: &Grammar, found: &mut Vec<&'t str>) {
    // For every node above: whether it makes what is in it belong to another thing.
    let mut above: Vec<bool> = Vec::new();
    loop {
        let node = cursor.node();
        let kind = node.kind();
        let nested = above.iter().any(|nests| *nests);
        let closed = grammar.closed.contains(&kind);
        let counts = closed || grammar.named.contains(&kind) || grammar.outermost.contains(&kind) && !nested;
        if counts && let Some(name) = name(node).and_then(|name| text.get(name.byte_range())) {
            found.push(name);
        }
        if !closed && above.len() < DEEPEST && cursor.goto_first_child() {
            above.push(grammar.nest.contains(&kind));
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
            above.pop();
        }
    }
}

/// The node that names what another one defines; nothing for what only mentions it.
fn name(node: Node<'_>) -> Option<Node<'_>> {
    match node.kind() {
        // Named here and defined elsewhere.
        "struct_specifier" | "union_specifier" | "enum_specifier" => node.child_by_field_name("body")?,
        // A guard against reading a header twice is no symbol.
        "preproc_def" => node.child_by_field_name("value")?,
        "type_definition" | "function_definition" if node.child_by_field_name("declarator").is_some() => {
            return declared(node);
        }
        _ => node,
    };
    let name = node.child_by_field_name("name")?;
    // Patterns and strings take apart or quote what other places name.
    (name.named_child_count() == 0).then_some(name)
}

/// In C a name stands inside of what is said about its type.
fn declared(node: Node<'_>) -> Option<Node<'_>> {
    let mut node = node.child_by_field_name("declarator")?;
    for _ in 0..DEEPEST {
        if matches!(node.kind(), "identifier" | "type_identifier" | "field_identifier") {
            return Some(node);
        }
        let inner = node.child_by_field_name("declarator");
        node = inner.or_else(|| node.named_child(0))?;
    }
    None
}
