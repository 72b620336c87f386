//! Top-level definitions of a workflow: global names, parameters, loaded files.

use fusee_text::sexpr::{NodeId, NodeKind};
use serde_json::Value as Json;

use super::compiler::{CompileJob, Compiler, Global, TailPosition};
use super::scan::{self, Definition};
use super::scope::FunctionBuilder;
use crate::builtin::Arity;
use crate::bytecode::Op;
use crate::form::{Special, SpecialForm};
use crate::param::{Param, ParamType};
use crate::value::Text;

impl<'t> Compiler<'t> {
    /// Collects everything defined at the top level of any file, before any expression is compiled.
    pub(super) fn define_globals(&mut self) {
        for file in 0..self.files.trees.len() {
            self.file = file;
            let tree = self.tree();
            for root in tree.roots() {
                if tree.head(*root).and_then(SpecialForm::find).map(|form| form.special)
                    == Some(Special::Params)
                {
                    self.declare_params(*root);
                }
            }
            for atom in self.overviews[file].atoms.clone() {
                self.declare_atom(atom);
            }
            for definition in scan::definitions(tree, tree.roots()) {
                self.define_global(definition);
            }
        }
        self.file = 0;
    }

    fn define_global(&mut self, Definition { name, name_node, node, conditional }: Definition<'t>) {
        let tree = self.tree();
        if self.atoms.contains_key(name) {
            return self.duplicate(name, name_node);
        }
        if let Some(known) = self.globals.get_mut(name) {
            // Which definition applies is decided at run time, so the arity is unknown.
            known.arity = None;
            if !conditional {
                self.duplicate(name, name_node);
            }
            return;
        }
        self.check_name(name, name_node);
        let items = tree.items(node);
        let arity = match (tree.head(node), items) {
            (Some("defun"), [_, _, params, ..]) => Some(Arity::exactly(tree.items(*params).len())),
            (_, [_, target, ..]) if tree.kind(*target) == NodeKind::List => {
                Some(Arity::exactly(tree.items(*target).len().saturating_sub(1)))
            }
            (_, [_, _, value]) => self.arity_of(*value),
            _ => None,
        };
        let arity = arity.filter(|_| !conditional && !self.assigned.contains(name));
        self.add_global(name, name_node, arity, false);
    }

    fn add_global(&mut self, name: &'t str, node: NodeId, arity: Option<Arity>, bound: bool) -> u32 {
        let index = self.global_names.len() as u32;
        self.global_names.push(Text::from(name));
        let span = self.tree().span(node);
        self.globals.insert(name, Global { index, arity, bound, span, file: self.file });
        index
    }

    fn declare_params(&mut self, node: NodeId) {
        if self.file != 0 {
            return self.error("misplaced-definition", node, "a loaded file cannot declare parameters");
        }
        if !self.params.is_empty() {
            return self.error("duplicate-definition", node, "the parameters are already declared");
        }
        for declared in self.arguments(node) {
            let Some((name, name_node, param)) = self.param(*declared) else { continue };
            if self.globals.contains_key(name) {
                self.duplicate(name, name_node);
                continue;
            }
            self.check_name(name, name_node);
            let index = self.add_global(name, name_node, None, true);
            self.params.push((param, index));
        }
    }

    /// Parses a declared parameter: `name`, `(name type)`, `(name type :default value :doc text)`.
    pub(super) fn param(&mut self, node: NodeId) -> Option<(&'t str, NodeId, Param)> {
        let tree = self.tree();
        if let Some(name) = tree.symbol(node) {
            return Some((name, node, Param::required(name, ParamType::Any)));
        }
        let help = || Some("write name, (name type) or (name type :default value :doc \"text\")".to_owned());
        let Some((name_node, rest)) = tree.list(node).and_then(<[NodeId]>::split_first) else {
            self.error_with("malformed-form", node, "not a valid parameter", help());
            return None;
        };
        let Some(name) = tree.symbol(*name_node) else {
            self.error_with("malformed-form", node, "a parameter needs a name", help());
            return None;
        };
        let keywords = self.keyword_arguments(node, rest, &["default", "doc"])?;
        let kind = match *keywords.positional {
            [] => ParamType::Any,
            [kind] => self.param_type(kind)?,
            _ => {
                self.error_with("malformed-form", node, "a parameter has exactly one type", help());
                return None;
            }
        };
        let mut param = Param::required(name, kind);
        if let Some(default) = keywords.values.first().copied().flatten() {
            let value = self.literal(default);
            match value {
                Some(value) if kind.accepts(&value) || value.is_null() => param.default = Some(value),
                Some(_) => {
                    self.error("wrong-type", default, format!("the default is not of type {}", kind.name()))
                }
                None => self.error("malformed-form", default, "a default must be a literal or 'quoted data"),
            }
            param.required = false;
        }
        if let Some(doc) = keywords.values.get(1).copied().flatten() {
            match tree.string(doc) {
                Some(text) => param.doc = Some(text.to_owned()),
                None => self.error("malformed-form", doc, "`:doc` must be a string"),
            }
        }
        Some((name, *name_node, param))
    }

    fn param_type(&mut self, node: NodeId) -> Option<ParamType> {
        let tree = self.tree();
        let name = tree.symbol(node).or(tree.string(node)).unwrap_or("");
        let found = ParamType::named(name);
        if found.is_none() {
            let shown = tree.source().slice(tree.span(node));
            let help = Some(format!("valid types are {}", ParamType::NAMES.join(", ")));
            self.error_with("unknown-type", node, format!("unknown type `{shown}`"), help);
        }
        found
    }

    /// The value of a literal or quoted expression; `None` for anything else.
    pub(super) fn literal(&self, node: NodeId) -> Option<Json> {
        let tree = self.tree();
        match tree.kind(node) {
            NodeKind::Int(_) | NodeKind::Float(_) | NodeKind::Bool(_) | NodeKind::Nil | NodeKind::String => {
                self.data(node).to_json().ok()
            }
            NodeKind::Quote => self.data(*tree.items(node).first()?).to_json().ok(),
            _ => None,
        }
    }

    pub(super) fn params_form(&mut self, node: NodeId, tail: TailPosition) {
        self.at_top_only(node, "params");
        self.leaf(Op::Nil, node, tail);
    }

    pub(super) fn at_top_only(&mut self, node: NodeId, name: &str) -> bool {
        // It must be a root of the file, not merely in its scope: the first pass would miss `(if x (params
        // …))`.
        let is_root = self.tree().roots().binary_search(&node).is_ok();
        if !is_root {
            self.error(
                "misplaced-definition",
                node,
                format!("`{name}` is only allowed at the top level of a workflow"),
            );
        }
        is_root
    }

    pub(super) fn load(&mut self, node: NodeId, tail: TailPosition) {
        if !self.at_top_only(node, "load") {
            return self.compile_invalid(&[], node, tail);
        }
        let Some(&file) = self.files.loads.get(&(self.file, node)) else {
            // The load failed and was reported, or the file is already loaded.
            return self.leaf(Op::Nil, node, tail);
        };
        let back = self.file;
        let tree = &self.files.trees[file];
        self.builders.push(FunctionBuilder::top(Text::from(&**tree.source().name()), file as u32));
        self.file = file;
        let mut work = Vec::new();
        match tree.roots() {
            [] => self.emit_at(Op::Nil, fusee_text::Span::at(0)),
            [first, ..] => work.push(CompileJob::Body(tree.roots(), TailPosition::No, *first)),
        }
        work.push(CompileJob::EndFile(back, node, tail));
        self.plan(work);
    }

    pub(super) fn end_file(&mut self, back: usize, node: NodeId, tail: TailPosition) {
        self.emit_at(Op::Return, fusee_text::Span::at(0));
        self.file = back;
        let Some(builder) = self.builders.pop() else { return };
        let index = self.add_function(builder);
        self.emit(Op::Closure(index), node);
        self.leaf(Op::Call(0), node, tail);
    }
}
