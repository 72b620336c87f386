//! Function calls.

use fusee_text::sexpr::{NodeId, NodeKind};

use super::compiler::{CompileJob, Compiler, NameMeaning, TailPosition};
use super::scope::{ResolvedName, Variable};
use crate::builtin::{Arity, Builtin, places_and_values};
use crate::bytecode::{Binary, Op};

impl<'t> Compiler<'t> {
    /// Compiles a list that is not a special form.
    pub(super) fn call(&mut self, node: NodeId, tail: TailPosition) {
        let tree = self.tree();
        let Some((head, arguments)) = tree.items(node).split_first() else {
            let help = Some("write an empty list as (list) or '()".to_owned());
            self.error_with("empty-call", node, "an empty list is not a call", help);
            return self.compile_invalid(&[], node, tail);
        };
        match tree.kind(*head) {
            NodeKind::Symbol => self.call_name(tree.text(*head), node, arguments, tail),
            NodeKind::List => self.call_value(*head, arguments, node, tail),
            NodeKind::Unreadable => self.compile_invalid(arguments, node, tail),
            _ => {
                let shown: String = tree.source().slice(tree.span(*head)).chars().take(40).collect();
                let help = Some("write a list of values as (list …)".to_owned());
                self.error_with("not-a-function", *head, format!("`{shown}` is not a function"), help);
                self.compile_invalid(arguments, node, tail);
            }
        }
    }

    fn call_name(&mut self, name: &'t str, node: NodeId, arguments: &'t [NodeId], tail: TailPosition) {
        match self.resolve_name(name) {
            NameMeaning::Variable(found) => {
                if let ResolvedName::Local(_, Variable { arity, .. })
                | ResolvedName::Captured(_, Variable { arity, .. }) = found
                {
                    self.check_arity(name, arity, arguments, node);
                }
                self.load_variable(&found, node);
                self.plan_call(arguments, node, tail);
            }
            NameMeaning::Global(index) => {
                self.check_bound(name, node);
                let arity = self.globals.get(name).and_then(|global| global.arity);
                self.check_arity(name, arity, arguments, node);
                self.call_global(index, arguments, node, tail);
            }
            NameMeaning::Builtin(builtin) => self.call_builtin(builtin, node, arguments, tail),
            NameMeaning::Atom(atom) => self.call_atom(&atom, node, arguments, tail),
            NameMeaning::Callable(callable) => self.call_callable(callable, node, arguments, tail),
            NameMeaning::Unknown => self.unknown_callee(name, node, arguments, tail),
        }
    }

    fn call_value(&mut self, head: NodeId, arguments: &'t [NodeId], node: NodeId, tail: TailPosition) {
        if let Some(arity) = self.arity_of(head) {
            self.check_arity("lambda", Some(arity), arguments, node);
        }
        let mut work = vec![CompileJob::Expr(head, TailPosition::No)];
        work.extend(arguments.iter().map(|argument| CompileJob::Expr(*argument, TailPosition::No)));
        work.extend(call_ops(arguments.len(), node, tail));
        self.plan(work);
    }

    /// Schedules the arguments and the call of a function that is on the stack.
    fn plan_call(&mut self, arguments: &'t [NodeId], node: NodeId, tail: TailPosition) {
        let mut work: Vec<CompileJob<'t>> =
            arguments.iter().map(|argument| CompileJob::Expr(*argument, TailPosition::No)).collect();
        work.extend(call_ops(arguments.len(), node, tail));
        self.plan(work);
    }

    fn call_global(&mut self, global: u32, arguments: &'t [NodeId], node: NodeId, tail: TailPosition) {
        let Ok(count) = u16::try_from(arguments.len()) else {
            self.emit(Op::Global(global), node);
            return self.plan_call(arguments, node, tail);
        };
        let mut work: Vec<CompileJob<'t>> =
            arguments.iter().map(|argument| CompileJob::Expr(*argument, TailPosition::No)).collect();
        match tail {
            TailPosition::No => work.push(CompileJob::Op(Op::CallGlobal { arguments: count, global }, node)),
            TailPosition::Yes => {
                work.push(CompileJob::Op(Op::TailCallGlobal { arguments: count, global }, node));
                work.push(CompileJob::Op(Op::Return, node));
            }
        }
        self.plan(work);
    }

    fn call_builtin(
        &mut self,
        builtin: &'static Builtin,
        node: NodeId,
        arguments: &'t [NodeId],
        tail: TailPosition,
    ) {
        let arguments: Vec<NodeId> = match builtin.name {
            "pmap" => match self.keyword_arguments(node, arguments, &["limit"]) {
                Some(KeywordArguments { mut positional, values }) => {
                    positional.extend(values.into_iter().flatten());
                    positional
                }
                None => return self.compile_invalid(arguments, node, tail),
            },
            _ => arguments.to_vec(),
        };
        if !self.check_arity(builtin.name, Some(builtin.arity), &arguments, node) {
            return self.compile_invalid(&arguments, node, tail);
        }
        if builtin.name == "format" {
            self.check_format(&arguments, node);
        }
        if let (Some(binary), [one, two]) = (binary_of(builtin.name), arguments.as_slice()) {
            return self.call_binary(binary, *one, *two, node, tail);
        }
        let index = self.builtin_index(builtin);
        let op = Op::CallBuiltin { builtin: index, arguments: arguments.len() as u32 };
        let mut work: Vec<CompileJob<'t>> =
            arguments.iter().map(|argument| CompileJob::Expr(*argument, TailPosition::No)).collect();
        work.push(CompileJob::Op(op, node));
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }

    fn call_binary(&mut self, binary: Binary, one: NodeId, two: NodeId, node: NodeId, tail: TailPosition) {
        let tree = self.tree();
        if let (Some(name), NodeKind::Int(int)) = (tree.symbol(one), tree.kind(two))
            && let Ok(int) = i32::try_from(int)
            && let NameMeaning::Variable(ResolvedName::Local(
                slot,
                Variable { cell: false, checked: false, .. },
            )) = self.resolve_name(name)
            && let Ok(local) = u16::try_from(slot)
        {
            return self.leaf(Op::BinaryLocalInt { binary, local, int }, node, tail);
        }
        let mut work = vec![
            CompileJob::Expr(one, TailPosition::No),
            CompileJob::Expr(two, TailPosition::No),
            CompileJob::Op(Op::Binary(binary), node),
        ];
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }

    fn builtin_index(&mut self, builtin: &'static Builtin) -> u16 {
        let known = self.builtins.iter().position(|known| std::ptr::eq(*known, builtin));
        let index = known.unwrap_or_else(|| {
            self.builtins.push(builtin);
            self.builtins.len() - 1
        });
        // There are far fewer than 65536 library functions.
        index as u16
    }

    fn check_arity(&mut self, name: &str, arity: Option<Arity>, arguments: &[NodeId], node: NodeId) -> bool {
        let Some(arity) = arity.filter(|arity| !arity.allows(arguments.len())) else { return true };
        let message = format!("`{name}` takes {arity}, not {}", arguments.len());
        let help = Builtin::find(name).map(|builtin| format!("usage: {}", builtin.signature));
        self.error_with("wrong-arity", node, message, help);
        false
    }

    fn check_format(&mut self, arguments: &[NodeId], node: NodeId) {
        let tree = self.tree();
        if let Some((pattern, values)) = arguments.split_first()
            && let Some(pattern) = tree.string(*pattern)
        {
            let places = pattern.matches("{}").count();
            if places != values.len() {
                let message = places_and_values(places, values.len());
                self.error("wrong-arity", node, message);
            }
        }
    }

    fn unknown_callee(&mut self, name: &'t str, node: NodeId, arguments: &'t [NodeId], tail: TailPosition) {
        let tree = self.tree();
        let is_pair = |node: &NodeId| tree.head(*node).is_some() && tree.items(*node).len() == 2;
        let help = self.near_name(name);
        let head = tree.items(node).first().copied().unwrap_or(node);
        if !arguments.is_empty() && arguments.iter().all(is_pair) {
            self.error_with("unknown-task", head, format!("unknown task or tool `{name}`"), help);
            let values: Vec<NodeId> =
                arguments.iter().filter_map(|pair| tree.items(*pair).get(1).copied()).collect();
            return self.compile_invalid(&values, node, tail);
        }
        let message = format!("`{name}` is not bound: no function, task or tool has this name");
        self.error_with("unbound-name", head, message, help);
        self.compile_invalid(arguments, node, tail);
    }

    /// Separates `:keyword value` pairs from the other arguments; reports an error and returns `None` if they
    /// are malformed.
    pub(super) fn keyword_arguments(
        &mut self,
        node: NodeId,
        arguments: &'t [NodeId],
        allowed: &[&str],
    ) -> Option<KeywordArguments> {
        let tree = self.tree();
        let mut keywords = KeywordArguments { positional: Vec::new(), values: vec![None; allowed.len()] };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let Some(name) = tree.keyword(*argument) else {
                keywords.positional.push(*argument);
                continue;
            };
            let Some(index) = allowed.iter().position(|known| *known == name) else {
                let known: Vec<String> = allowed.iter().map(|name| format!(":{name}")).collect();
                let help =
                    fusee_text::suggest::did_you_mean(&format!(":{name}"), known.iter().map(String::as_str));
                let help = help.unwrap_or_else(|| format!("valid keywords are {}", known.join(" ")));
                self.error_with(
                    "unknown-keyword",
                    *argument,
                    format!("unknown keyword `:{name}`"),
                    Some(help),
                );
                return None;
            };
            let Some(value) = rest.next() else {
                self.error("malformed-form", node, format!("`:{name}` needs a value"));
                return None;
            };
            if keywords.values[index].replace(*value).is_some() {
                self.error("duplicate-parameter", *argument, format!("`:{name}` is specified twice"));
                return None;
            }
        }
        Some(keywords)
    }
}

/// Arguments, with the values of keywords separated, in the order of the allowed keywords.
pub(super) struct KeywordArguments {
    pub(super) positional: Vec<NodeId>,
    pub(super) values: Vec<Option<NodeId>>,
}

fn call_ops<'t>(count: usize, node: NodeId, tail: TailPosition) -> Vec<CompileJob<'t>> {
    let count = count as u32;
    match tail {
        TailPosition::No => vec![CompileJob::Op(Op::Call(count), node)],
        TailPosition::Yes => {
            vec![CompileJob::Op(Op::TailCall(count), node), CompileJob::Op(Op::Return, node)]
        }
    }
}

fn binary_of(name: &str) -> Option<Binary> {
    Some(match name {
        "+" => Binary::Add,
        "-" => Binary::Subtract,
        "*" => Binary::Multiply,
        "<" => Binary::Less,
        "<=" => Binary::LessOrEqual,
        ">" => Binary::Greater,
        ">=" => Binary::GreaterOrEqual,
        "=" | "eq?" | "equal?" => Binary::Equal,
        _ => return None,
    })
}
