//! Finds the symbols of a file with tree-sitter. `symbols.rs` finds them line by line if there is no grammar
//! for the language, the text does not parse, or it is too long.
//!
//! Only the index uses this: a grammar's tables are not paged in until the first file of its language is
//! read.

use std::ops::ControlFlow;

use tree_sitter::{Language, Node, ParseOptions, Parser, Tree, TreeCursor};

/// Longer texts are not parsed: hand-written code is shorter, and generated code defines little.
const MAX_LENGTH: usize = 128 * 1024;
/// One progress callback is allowed per this many bytes: about twelve times what ordinary text needs. Text
/// that makes the parser backtrack excessively falls back to the line scanner.
const BYTES_PER_REPORT: usize = 16;
const REPORTS: usize = 256;
/// Maximum depth at which nodes are inspected.
const MAX_DEPTH: usize = 64;

/// Node kinds that define symbols in a language.
struct Grammar {
    language: fn() -> Language,
    /// Nodes whose `name` field is a symbol; their children are searched too.
    named: &'static [&'static str],
    /// The same, but their children are not searched.
    closed: &'static [&'static str],
    /// The same, but only outside of the nodes in `nest`.
    outermost: &'static [&'static str],
    /// Nodes whose children are members of something else.
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

/// Also used for JavaScript: the TSX grammar covers everything its own grammar does.
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

/// Returns the defined names in source order, or `None` if the grammar cannot tell.
pub(super) fn find<'t>(text: &'t str, language: &str) -> Option<Vec<&'t str>> {
    let grammar = grammar(language)?;
    if text.len() > MAX_LENGTH {
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

/// The line of the first syntax error, from 1; `None` if the text parses or the grammar cannot tell.
pub(super) fn first_error(text: &str, language: &str, path: &str) -> Option<usize> {
    // The grammar is that of TSX, which reads a few constructs of TypeScript and C differently.
    let is_close = path.ends_with(".ts") || matches!(language, "c" | "cpp");
    let grammar = grammar(language).filter(|_| !is_close && text.len() <= MAX_LENGTH)?;
    let tree = parse(text, grammar)?;
    if !tree.root_node().has_error() {
        return None;
    }
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            return Some(node.start_position().row + 1);
        }
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(1);
            }
        }
    }
}

fn parse(text: &str, grammar: &Grammar) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&(grammar.language)()).ok()?;
    let mut left = REPORTS + text.len() / BYTES_PER_REPORT;
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

/// Walks the tree without recursion, because text can nest as deep as it is long.
fn collect<'t>(cursor: &mut TreeCursor<'_>, text: &'t str, grammar: &Grammar, found: &mut Vec<&'t str>) {
    // For each ancestor: whether its children are members of something else.
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
        if !closed && above.len() < MAX_DEPTH && cursor.goto_first_child() {
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

/// Returns the node with the name of a definition; `None` if the node is only a reference.
fn name(node: Node<'_>) -> Option<Node<'_>> {
    match node.kind() {
        // Without a body it is only mentioned, and defined elsewhere.
        "struct_specifier" | "union_specifier" | "enum_specifier" => node.child_by_field_name("body")?,
        // An include guard is not a symbol.
        "preproc_def" => node.child_by_field_name("value")?,
        "type_definition" | "function_definition" if node.child_by_field_name("declarator").is_some() => {
            return declared(node);
        }
        _ => node,
    };
    let name = node.child_by_field_name("name")?;
    // Patterns and strings destructure or quote names that are defined elsewhere.
    (name.named_child_count() == 0).then_some(name)
}

/// Finds the name in a C declarator, where it is nested inside the type syntax.
fn declared(node: Node<'_>) -> Option<Node<'_>> {
    let mut node = node.child_by_field_name("declarator")?;
    for _ in 0..MAX_DEPTH {
        if matches!(node.kind(), "identifier" | "type_identifier" | "field_identifier") {
            return Some(node);
        }
        let inner = node.child_by_field_name("declarator");
        node = inner.or_else(|| node.named_child(0))?;
    }
    None
}
