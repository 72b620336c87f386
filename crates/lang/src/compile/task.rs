//! Calls of tasks, tools and context queries: `(name (key expr) …)`, `call`, `call-atomic-task`,
//! `atomic-task`, `direct-tool`, `get-context`, `spawn`.

use std::sync::Arc;

use fusee_text::sexpr::{NodeId, NodeKind};
use fusee_text::suggest;

use super::compiler::{CompileJob, Compiler, NameMeaning, TailPosition};
use crate::bytecode::{Argument, ArgumentRole, CallSite, Op, SiteTarget};
use crate::catalog::{Callable, CallableKind};
use crate::defatom::Atom;
use crate::effect::CallForm;
use crate::form::{Special, SpecialForm};
use crate::param::{Param, ParamType};
use crate::value::{Text, Value};

/// Keys of a task call that are settings of the request, not inputs.
const RESERVED: [&str; 5] = ["files", "context", "history_config", "limits", "model"];
/// Additional settings of the forms that build a request.
const REQUEST: [&str; 5] = ["description", "subtype", "context_management", "file_paths", "name"];
/// Parts of an inline task definition.
const DEFINITION: [&str; 3] = ["instructions", "system", "output_format"];
/// Keys of `get-context`.
const CONTEXT: [&str; 7] =
    ["query", "inputs", "inherited_context", "previous_outputs", "history", "files", "limit"];

/// The keys a call accepts.
#[derive(Clone, Copy)]
enum KnownKeys<'a> {
    /// Parameters of a tool.
    Tool(CalledTask<'a>),
    /// Parameters of a task, and settings.
    Task(CalledTask<'a>),
    /// Inputs of any name, and settings.
    Unknown,
    /// Parameters of the task if it is known, settings, and request settings.
    Request(Option<CalledTask<'a>>),
    /// Same as a request, plus the parts of a task definition.
    Inline,
    /// Keys of `get-context`.
    Context,
}

/// Declaration of a known callee.
#[derive(Clone, Copy)]
struct CalledTask<'a> {
    params: &'a [Param],
    /// Whether undeclared parameters are rejected.
    closed: bool,
    /// Whether literals are checked against the declared types; the engine checks the types of templates.
    typed: bool,
}

impl<'a> CalledTask<'a> {
    fn atom(atom: &'a Atom) -> Self {
        Self { params: &atom.params, closed: true, typed: true }
    }

    fn callable(callable: &'a Callable) -> Self {
        Self { params: &callable.params, closed: !callable.open, typed: false }
    }
}

/// Names and value nodes that a task call passes on.
struct CallArguments {
    arguments: Vec<Argument>,
    values: Vec<NodeId>,
}

impl<'t> Compiler<'t> {
    pub(super) fn call_atom(
        &mut self,
        atom: &Arc<Atom>,
        node: NodeId,
        pairs: &'t [NodeId],
        tail: TailPosition,
    ) {
        let target = SiteTarget::Atom(atom.clone());
        self.plan_site(
            target,
            CallForm::Call,
            None,
            KnownKeys::Task(CalledTask::atom(atom)),
            pairs,
            node,
            tail,
        );
    }

    pub(super) fn call_callable(
        &mut self,
        callable: &'t Arc<Callable>,
        node: NodeId,
        pairs: &'t [NodeId],
        tail: TailPosition,
    ) {
        let target = SiteTarget::Named(callable.clone());
        self.plan_site(target, CallForm::Call, None, keys_of(callable), pairs, node, tail);
    }

    /// `(call name (key expr) …)`
    pub(super) fn call_form(&mut self, node: NodeId, tail: TailPosition) {
        let Some((target, pairs)) = self.arguments(node).split_first() else {
            return self.malformed(node, "`call` needs the name of a task or tool", tail);
        };
        self.call_target(*target, pairs, node, tail);
    }

    /// `(direct-tool name (key expr) …)`
    pub(super) fn direct_tool(&mut self, node: NodeId, tail: TailPosition) {
        let Some((target, pairs)) = self.arguments(node).split_first() else {
            return self.malformed(node, "`direct-tool` needs the name of a tool", tail);
        };
        if let Some(name) = self.literal_target(*target)
            && let NameMeaning::Callable(callable) = self.outside(name)
            && callable.kind == CallableKind::Task
        {
            let help = Some(format!("call it as ({name} (key expression) …)"));
            self.error_with("unknown-task", *target, format!("`{name}` is a task, not a tool"), help);
        }
        self.call_target(*target, pairs, node, tail);
    }

    fn call_target(&mut self, target: NodeId, pairs: &'t [NodeId], node: NodeId, tail: TailPosition) {
        let Some(name) = self.literal_target(target) else {
            return self.plan_site(
                SiteTarget::Computed,
                CallForm::Call,
                Some(target),
                KnownKeys::Unknown,
                pairs,
                node,
                tail,
            );
        };
        match self.outside(name) {
            NameMeaning::Atom(atom) => self.call_atom(&atom, node, pairs, tail),
            NameMeaning::Callable(callable) => self.call_callable(callable, node, pairs, tail),
            _ => {
                self.unknown_task(name, target);
                self.compile_invalid(&self.values_of(pairs), node, tail);
            }
        }
    }

    /// `(call-atomic-task name (key expr) …)` and `(spawn description (key expr) …)`.
    pub(super) fn request(&mut self, form: &'static SpecialForm, node: NodeId, tail: TailPosition) {
        let how = if form.special == Special::Spawn { CallForm::Spawn } else { CallForm::Call };
        let arguments = self.arguments(node);
        let Some((target, pairs)) = arguments.split_first().filter(|(first, _)| !self.is_pair(**first))
        else {
            let named = self.literal_of(arguments, "name");
            if let Some(name) = named {
                return self.named_request(name, how, arguments, node, tail);
            }
            let tree = self.tree();
            let describes = |pair: &NodeId| matches!(tree.head(*pair), Some("description" | "subtype"));
            if !arguments.iter().any(describes) {
                let message =
                    format!("`{}` needs the name, the description or the subtype of a task", form.name);
                return self.malformed(node, message, tail);
            }
            let subtype = || self.literal_of(arguments, "subtype").map(|subtype| format!("atomic:{subtype}"));
            let known = self.literal_of(arguments, "description").map(str::to_owned).or_else(subtype);
            let target = known.map_or(SiteTarget::Request, SiteTarget::Described);
            let keys = KnownKeys::Request(None);
            return self.plan_site(target, how, None, keys, arguments, node, tail);
        };
        let Some(name) = self.literal_target(*target) else {
            return self.plan_site(
                SiteTarget::Computed,
                how,
                Some(*target),
                KnownKeys::Request(None),
                pairs,
                node,
                tail,
            );
        };
        match self.outside(name) {
            NameMeaning::Unknown if self.tree().kind(*target) == NodeKind::String => {
                self.plan_site(
                    SiteTarget::Described(name.to_owned()),
                    how,
                    None,
                    KnownKeys::Request(None),
                    pairs,
                    node,
                    tail,
                );
            }
            NameMeaning::Unknown => {
                self.unknown_task(name, *target);
                self.compile_invalid(&self.values_of(pairs), node, tail);
            }
            _ => self.named_request(name, how, pairs, node, tail),
        }
    }

    fn named_request(
        &mut self,
        name: &'t str,
        how: CallForm,
        pairs: &'t [NodeId],
        node: NodeId,
        tail: TailPosition,
    ) {
        match self.outside(name) {
            NameMeaning::Atom(atom) => {
                let target = SiteTarget::Atom(atom.clone());
                self.plan_site(
                    target,
                    how,
                    None,
                    KnownKeys::Request(Some(CalledTask::atom(&atom))),
                    pairs,
                    node,
                    tail,
                );
            }
            NameMeaning::Callable(callable) => {
                let target = SiteTarget::Named(callable.clone());
                let keys = KnownKeys::Request(Some(CalledTask::callable(callable)));
                self.plan_site(target, how, None, keys, pairs, node, tail);
            }
            _ => {
                self.unknown_task(name, node);
                self.compile_invalid(&self.values_of(pairs), node, tail);
            }
        }
    }

    /// `(atomic-task (instructions s) (key expr) …)`; same as `call-atomic-task` if the first argument is a
    /// name.
    pub(super) fn atomic_task(&mut self, form: &'static SpecialForm, node: NodeId, tail: TailPosition) {
        let arguments = self.arguments(node);
        if arguments.first().is_some_and(|first| !self.is_pair(*first)) {
            return self.request(form, node, tail);
        }
        let tree = self.tree();
        let key = |pair: &NodeId| tree.head(*pair);
        if !arguments.iter().any(|pair| key(pair) == Some("instructions")) {
            self.error("missing-parameter", node, "`atomic-task` needs `(instructions …)`");
        }
        let settings = RESERVED.iter().chain(&REQUEST).chain(&DEFINITION);
        let inputs: Vec<&str> =
            arguments.iter().filter_map(key).filter(|key| !settings.clone().any(|s| s == key)).collect();
        if !inputs.contains(&"inputs") {
            for pair in arguments.iter().filter(|pair| matches!(key(pair), Some("instructions" | "system"))) {
                if let Some(text) = tree.items(*pair).get(1) {
                    self.check_placeholders(*text, &inputs);
                }
            }
        }
        self.plan_site(SiteTarget::Inline, CallForm::Call, None, KnownKeys::Inline, arguments, node, tail);
    }

    pub(super) fn get_context(&mut self, node: NodeId, tail: TailPosition) {
        let pairs = self.arguments(node);
        self.plan_site(SiteTarget::Context, CallForm::Call, None, KnownKeys::Context, pairs, node, tail);
    }

    #[expect(clippy::too_many_arguments, reason = "a call has this many independent parts")]
    fn plan_site(
        &mut self,
        target: SiteTarget,
        form: CallForm,
        computed: Option<NodeId>,
        keys: KnownKeys<'_>,
        pairs: &'t [NodeId],
        node: NodeId,
        tail: TailPosition,
    ) {
        let CallArguments { arguments, values } = self.pairs(keys, pairs, node);
        let tree = self.tree();
        let mut work: Vec<CompileJob<'t>> =
            computed.iter().map(|target| CompileJob::Expr(*target, TailPosition::No)).collect();
        for (argument, value) in arguments.iter().zip(&values) {
            let is_format = argument.role == ArgumentRole::Definition && &*argument.key == "output_format";
            work.push(match (&argument.literal, is_format) {
                (Some(literal), true) => {
                    CompileJob::Op(Op::Const(self.constant(Value::from_json(literal.clone()))), *value)
                }
                _ => CompileJob::Expr(*value, TailPosition::No),
            });
        }
        let site = self.sites.len() as u32;
        self.sites.push(CallSite { target, form, arguments, file: self.file as u32, span: tree.span(node) });
        work.push(CompileJob::Op(Op::Task(site), node));
        work.extend((tail == TailPosition::Yes).then_some(CompileJob::Op(Op::Return, node)));
        self.plan(work);
    }

    /// Parses `(key expression)` pairs and checks them against the declaration of the callee.
    fn pairs(&mut self, keys: KnownKeys<'_>, pairs: &'t [NodeId], node: NodeId) -> CallArguments {
        let tree = self.tree();
        let mut found = CallArguments { arguments: Vec::new(), values: Vec::new() };
        for pair in pairs {
            let Some(key) = tree.head(*pair) else {
                let help = Some("write arguments of tasks and tools as (key expression)".to_owned());
                self.error_with("malformed-argument", *pair, "not a valid argument", help);
                continue;
            };
            if found.arguments.iter().any(|known| &*known.key == key) {
                self.error("duplicate-parameter", *pair, format!("`{key}` is specified twice"));
                continue;
            }
            if key == "output_format" && matches!(keys, KnownKeys::Inline) {
                let format = self.output_format(*pair);
                let literal = format.and_then(|format| serde_json::to_value(format).ok());
                found.arguments.push(Argument {
                    key: Text::from(key),
                    literal,
                    role: ArgumentRole::Definition,
                });
                found.values.push(*pair);
                continue;
            }
            let &[_, value] = tree.items(*pair) else {
                let help = Some(format!("write ({key} expression), or ({key} (list …)) for a list"));
                self.error_with("malformed-argument", *pair, format!("`{key}` takes one expression"), help);
                continue;
            };
            let role = self.role(keys, key, *pair);
            let literal = self.literal(value);
            if let (
                KnownKeys::Task(known) | KnownKeys::Request(Some(known)),
                ArgumentRole::Input,
                Some(literal),
            ) = (keys, role, &literal)
                && known.typed
            {
                self.check_literal(known.params, key, literal, value);
            }
            found.arguments.push(Argument { key: Text::from(key), literal, role });
            found.values.push(value);
        }
        self.check_missing(keys, &found.arguments, node);
        found
    }

    fn role(&mut self, keys: KnownKeys<'_>, key: &str, pair: NodeId) -> ArgumentRole {
        let declared = |known: CalledTask<'_>| known.params.iter().any(|param| param.name == key);
        let setting = match keys {
            KnownKeys::Tool(_) | KnownKeys::Context => false,
            KnownKeys::Task(_) | KnownKeys::Unknown => RESERVED.contains(&key),
            KnownKeys::Request(Some(known)) if declared(known) => RESERVED.contains(&key),
            KnownKeys::Request(_) | KnownKeys::Inline => RESERVED.contains(&key) || REQUEST.contains(&key),
        };
        if setting {
            return ArgumentRole::Setting;
        }
        if let KnownKeys::Tool(known) | KnownKeys::Task(known) | KnownKeys::Request(Some(known)) = keys
            && known.params.iter().any(|param| param.is_called(key))
        {
            return ArgumentRole::Input;
        }
        let known: Vec<&str> = match keys {
            KnownKeys::Request(_) | KnownKeys::Inline if key == "inputs" => return ArgumentRole::Inputs,
            KnownKeys::Inline if DEFINITION.contains(&key) => return ArgumentRole::Definition,
            KnownKeys::Tool(CalledTask { params, closed: true, .. })
            | KnownKeys::Task(CalledTask { params, closed: true, .. })
            | KnownKeys::Request(Some(CalledTask { params, closed: true, .. })) => {
                params.iter().map(|param| param.name.as_str()).collect()
            }
            KnownKeys::Context => CONTEXT.to_vec(),
            _ => return ArgumentRole::Input,
        };
        if !known.contains(&key) {
            let help =
                suggest::did_you_mean(key, known.iter().copied()).unwrap_or_else(|| match known.as_slice() {
                    [] => "it takes no parameters".to_owned(),
                    known => format!("valid parameters are {}", known.join(", ")),
                });
            self.error_with("unknown-parameter", pair, format!("unknown parameter `{key}`"), Some(help));
        }
        ArgumentRole::Input
    }

    fn check_missing(&mut self, keys: KnownKeys<'_>, given: &[Argument], node: NodeId) {
        let params = match keys {
            KnownKeys::Tool(known) | KnownKeys::Task(known) => known.params,
            KnownKeys::Request(Some(known))
                if !given.iter().any(|argument| argument.role == ArgumentRole::Inputs) =>
            {
                known.params
            }
            _ => return,
        };
        let head = self.tree().items(node).first().copied().unwrap_or(node);
        for param in params.iter().filter(|param| param.required && param.default.is_none()) {
            if !given.iter().any(|argument| param.is_called(&argument.key)) {
                let help = Some(format!("add ({} …)", param.name));
                self.error_with(
                    "missing-parameter",
                    head,
                    format!("missing parameter `{}`", param.name),
                    help,
                );
            }
        }
    }

    fn check_literal(&mut self, params: &[Param], key: &str, literal: &serde_json::Value, node: NodeId) {
        if let Some(param) = params.iter().find(|param| param.name == key)
            && param.kind != ParamType::Any
            && !param.kind.accepts(literal)
            && !literal.is_null()
        {
            self.error("wrong-type", node, format!("`{key}` must be of type {}", param.kind.name()));
        }
    }

    /// The name denoted by a target: `'name`, `"name"`, or `name` if that is not a variable.
    fn literal_target(&mut self, node: NodeId) -> Option<&'t str> {
        let tree = self.tree();
        match tree.kind(node) {
            NodeKind::String => Some(tree.text(node)),
            NodeKind::Quote => tree.symbol(*tree.items(node).first()?),
            NodeKind::Symbol => match self.resolve_name(tree.text(node)) {
                NameMeaning::Variable(_) | NameMeaning::Global(_) => None,
                _ => Some(tree.text(node)),
            },
            _ => None,
        }
    }

    /// Resolves a name among tasks and tools, ignoring variables.
    fn outside(&self, name: &str) -> NameMeaning<'t> {
        if let Some(atom) = self.atoms.get(name) {
            return NameMeaning::Atom(atom.clone());
        }
        self.catalog.find(name).map_or(NameMeaning::Unknown, NameMeaning::Callable)
    }

    fn unknown_task(&mut self, name: &str, node: NodeId) {
        let help = suggest::did_you_mean(name, self.atoms.keys().copied().chain(self.catalog.names()));
        self.error_with("unknown-task", node, format!("unknown task or tool `{name}`"), help);
    }

    fn is_pair(&self, node: NodeId) -> bool {
        let tree = self.tree();
        // The head of a pair is a key; the head of a computed name is a function.
        tree.kind(node) == NodeKind::List
            && tree.head(node).is_some_and(|head| {
                SpecialForm::find(head).is_none()
                    && crate::Builtin::find(head).is_none()
                    && !self.globals.contains_key(head)
            })
    }

    fn literal_of(&self, pairs: &[NodeId], key: &str) -> Option<&'t str> {
        let tree = self.tree();
        let pair = pairs.iter().find(|pair| tree.head(**pair) == Some(key))?;
        let value = *tree.items(*pair).get(1)?;
        match tree.kind(value) {
            NodeKind::Quote => tree.symbol(*tree.items(value).first()?),
            _ => tree.string(value),
        }
    }

    fn values_of(&self, pairs: &[NodeId]) -> Vec<NodeId> {
        let tree = self.tree();
        pairs.iter().filter_map(|pair| tree.items(*pair).get(1).copied()).collect()
    }
}

fn keys_of(callable: &Callable) -> KnownKeys<'_> {
    match callable.kind {
        CallableKind::Tool => KnownKeys::Tool(CalledTask::callable(callable)),
        CallableKind::Task => KnownKeys::Task(CalledTask::callable(callable)),
    }
}
