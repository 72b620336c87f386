//! `defatom`: tasks defined by the workflow itself. Their definitions are read completely before the workflow
//! runs.

use std::sync::Arc;

use fusee_text::placeholder::{FORMS, Placeholder, PlaceholderSyntax, TextPart, parse};
use fusee_text::sexpr::NodeId;
use fusee_text::suggest;
use serde_json::{Map as JsonMap, Value as Json};

use super::compiler::{Compiler, TailPosition};
use crate::bytecode::Op;
use crate::defatom::{Atom, CONTEXT_SETTINGS, OutputFormat, OutputKind};
use crate::value::Value;

const CLAUSES: [&str; 8] = [
    "params",
    "instructions",
    "description",
    "system",
    "subtype",
    "model",
    "output_format",
    "context_management",
];

impl<'t> Compiler<'t> {
    /// Compiles the form in place: its value is the name of the task.
    pub(super) fn defatom(&mut self, node: NodeId, tail: TailPosition) {
        let tree = self.tree();
        let name = self.arguments(node).first().and_then(|name| tree.symbol(*name)).unwrap_or("");
        let constant = self.constant(Value::symbol(name));
        self.leaf(Op::Const(constant), node, tail);
    }

    /// Reads and checks the definition of a `defatom` and registers the task.
    pub(super) fn declare_atom(&mut self, node: NodeId) {
        let tree = self.tree();
        let Some((name_node, clauses)) = self.arguments(node).split_first() else {
            return self.error("malformed-form", node, "a task needs a name");
        };
        let Some(name) = tree.symbol(*name_node) else {
            return self.error("malformed-form", *name_node, "the name of a task must be a symbol");
        };
        if self.atoms.contains_key(name) || self.globals.contains_key(name) {
            return self.duplicate(name, *name_node);
        }
        self.check_name(name, *name_node);
        let mut atom = Atom { name: name.to_owned(), ..Atom::default() };
        let mut seen: Vec<&str> = Vec::new();
        let mut texts: Vec<NodeId> = Vec::new();
        for clause in clauses {
            let Some(key) = tree.head(*clause) else {
                self.error("malformed-form", *clause, "a clause must be (key value)");
                continue;
            };
            if seen.contains(&key) {
                self.error("duplicate-parameter", *clause, format!("`{key}` is specified twice"));
                continue;
            }
            seen.push(key);
            self.atom_clause(&mut atom, key, *clause, &mut texts);
        }
        if !seen.contains(&"instructions") {
            self.error("missing-parameter", *name_node, format!("the task `{name}` has no `instructions`"));
        }
        for text in texts {
            self.check_placeholders(
                text,
                &atom.params.iter().map(|param| param.name.as_str()).collect::<Vec<_>>(),
            );
        }
        let atom = Arc::new(atom);
        self.atom_list.push(atom.clone());
        self.atoms.insert(name, atom);
    }

    fn atom_clause(&mut self, atom: &mut Atom, key: &'t str, clause: NodeId, texts: &mut Vec<NodeId>) {
        match key {
            "params" => {
                for declared in self.arguments(clause) {
                    let Some((name, name_node, param)) = self.param(*declared) else { continue };
                    if atom.params.iter().any(|known| known.name == name) {
                        self.duplicate(name, name_node);
                    } else {
                        atom.params.push(param);
                    }
                }
            }
            "output_format" => atom.output_format = self.output_format(clause),
            "context_management" => atom.context_management = self.context_management(clause),
            "instructions" | "description" | "system" | "subtype" | "model" => {
                let Some((node, text)) = self.text_clause(clause) else { return };
                if matches!(key, "instructions" | "description" | "system") {
                    texts.push(node);
                }
                match key {
                    "instructions" => atom.instructions = text,
                    "description" => atom.description = Some(text),
                    "system" => atom.system = Some(text),
                    "subtype" => atom.subtype = Some(text),
                    _ => atom.model = Some(text),
                }
            }
            _ => {
                let help = suggest::did_you_mean(key, CLAUSES);
                let help = help.unwrap_or_else(|| format!("valid clauses are {}", CLAUSES.join(", ")));
                self.error_with("unknown-parameter", clause, format!("unknown clause `{key}`"), Some(help));
            }
        }
    }

    fn text_clause(&mut self, clause: NodeId) -> Option<(NodeId, String)> {
        let tree = self.tree();
        match *self.arguments(clause) {
            [value] if tree.string(value).is_some() => Some((value, tree.text(value).to_owned())),
            _ => {
                self.error("malformed-form", clause, "expected one string literal");
                None
            }
        }
    }

    /// The entries of a clause `(key ((name value) …))`, with or without the inner list.
    fn entries(&self, clause: NodeId) -> &'t [NodeId] {
        let tree = self.tree();
        match self.arguments(clause) {
            [list] if tree.head(*list).is_none() => tree.items(*list),
            entries => entries,
        }
    }

    /// Parses `(context_management ((inherit_context "none") (accumulate_data true)))`.
    fn context_management(&mut self, clause: NodeId) -> JsonMap<String, Json> {
        let tree = self.tree();
        let mut settings = JsonMap::new();
        for entry in self.entries(clause) {
            let (key, value) = match *tree.items(*entry) {
                [_, value] => (tree.head(*entry).unwrap_or_default(), tree.text(value)),
                _ => ("", ""),
            };
            let Some((_, values)) = CONTEXT_SETTINGS.iter().find(|(name, _)| *name == key) else {
                let names = CONTEXT_SETTINGS.iter().map(|(name, _)| *name);
                let help = suggest::did_you_mean(key, names.clone());
                let all = || format!("context settings are {}", names.collect::<Vec<_>>().join(", "));
                let help = Some(help.unwrap_or_else(all));
                self.error_with("unknown-parameter", *entry, "not a context setting", help);
                continue;
            };
            if values.contains(&value) {
                let value = value.parse().map_or_else(|_| value.into(), Json::Bool);
                settings.insert(key.to_owned(), value);
            } else {
                let message = format!("`{key}` must be {}, not `{value}`", values.join(" or "));
                self.error("wrong-type", *entry, message);
            }
        }
        settings
    }

    /// Parses `(output_format ((type "json") (schema "object")))`.
    pub(super) fn output_format(&mut self, clause: NodeId) -> Option<OutputFormat> {
        let (tree, entries) = (self.tree(), self.entries(clause));
        let (mut kind, mut schema, words) = (None, None, OutputFormat::SCHEMA_WORDS);
        for entry in entries {
            let value = match *tree.items(*entry) {
                [_, value] => tree.string(value).or(tree.symbol(value)),
                _ => None,
            };
            match (tree.head(*entry), value) {
                (Some("type"), value) => match value.and_then(OutputKind::named) {
                    None => {
                        self.error(
                            "wrong-type",
                            *entry,
                            "the type of an output must be \"json\" or \"text\"",
                        );
                    }
                    known => kind = known,
                },
                (Some("schema"), Some(value)) => {
                    if !words.contains(&value) && !value.ends_with(".json") {
                        let help = Some(format!(
                            "valid schemas are {}, or a path to a .json file",
                            words.join(", ")
                        ));
                        self.error_with(
                            "wrong-type",
                            *entry,
                            format!("`{value}` is not a valid schema"),
                            help,
                        );
                    }
                    schema = Some(value.to_owned());
                }
                _ => self.error("malformed-form", *entry, "expected (type …) or (schema …)"),
            }
        }
        if kind.is_none() {
            self.error("missing-parameter", clause, "an output format needs a `type`");
        }
        kind.map(|kind| OutputFormat { kind, schema })
    }

    /// Reports every placeholder of a text that is malformed or does not match a parameter.
    pub(super) fn check_placeholders(&mut self, node: NodeId, params: &[&str]) {
        let tree = self.tree();
        let Some(text) = tree.string(node) else { return };
        let mut reported: Vec<&str> = Vec::new();
        for part in parse(text, PlaceholderSyntax::Braces) {
            match part {
                TextPart::Name(Placeholder { name, .. }) => {
                    if !params.contains(&name) && !reported.contains(&name) {
                        reported.push(name);
                        let help = suggest::did_you_mean(name, params.iter().copied())
                            .unwrap_or_else(|| "write {{{{ for a literal {{".to_owned());
                        let message = format!("`{{{{{name}}}}}` is not a parameter of this task");
                        self.error_with("unknown-parameter", node, message, Some(help));
                    }
                }
                TextPart::Malformed { text, .. } => {
                    let message = format!("`{text}` is not a valid placeholder");
                    self.error_with("malformed-placeholder", node, message, Some(FORMS.to_owned()));
                }
                TextPart::Text(_) => {}
            }
        }
    }
}
