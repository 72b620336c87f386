//! A second evaluator for a subset of the language, written as directly as possible: a recursive tree walker.
//! Any disagreement with the machine is a bug in one of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use fusee_text::sexpr::{NodeId, NodeKind, Tree};

/// A value of the naive evaluator.
#[derive(Clone)]
pub(crate) enum Naive {
    Nil,
    Bool(bool),
    Int(i64),
    Text(String),
    Symbol(String),
    List(Rc<Vec<Naive>>),
    Function(Rc<Function>),
    Library(&'static str),
}

pub(crate) struct Function {
    params: Vec<String>,
    body: Vec<NodeId>,
    scope: Scope,
}

/// An error; errors are not distinguished in comparisons.
pub(crate) struct Raised;

type Result<T> = std::result::Result<T, Raised>;

#[derive(Clone)]
struct Scope(Rc<Names>);

struct Names {
    own: RefCell<HashMap<String, Naive>>,
    around: Option<Scope>,
}

impl Scope {
    fn new(around: Option<Scope>) -> Scope {
        Scope(Rc::new(Names { own: RefCell::default(), around }))
    }

    fn bind(&self, name: &str, value: Naive) {
        self.0.own.borrow_mut().insert(name.to_owned(), value);
    }

    fn get(&self, name: &str) -> Option<Naive> {
        let own = self.0.own.borrow().get(name).cloned();
        own.or_else(|| self.0.around.as_ref()?.get(name))
    }

    fn set(&self, name: &str, value: Naive) -> Result<()> {
        if let Some(own) = self.0.own.borrow_mut().get_mut(name) {
            *own = value;
            return Ok(());
        }
        self.0.around.as_ref().ok_or(Raised)?.set(name, value)
    }
}

/// Evaluates a program; returns its value and the messages it logged.
pub(crate) fn evaluate(tree: &Tree) -> (Result<Naive>, Vec<String>) {
    let mut evaluator = Evaluator { tree, log: Vec::new() };
    let scope = Scope::new(None);
    let value = evaluator.body(tree.roots(), &scope);
    (value, evaluator.log)
}

impl Naive {
    fn is_true(&self) -> bool {
        !matches!(self, Naive::Nil | Naive::Bool(false))
    }

    /// The value as printed by the language.
    pub(crate) fn show(&self) -> String {
        match self {
            Naive::Nil => "nil".into(),
            Naive::Bool(value) => value.to_string(),
            Naive::Int(value) => value.to_string(),
            Naive::Text(text) => format!("{text:?}"),
            Naive::Symbol(name) => name.clone(),
            Naive::List(items) => {
                let items: Vec<String> = items.iter().map(Naive::show).collect();
                format!("({})", items.join(" "))
            }
            Naive::Function(_) | Naive::Library(_) => "<function>".into(),
        }
    }

    fn int(&self) -> Result<i64> {
        if let Naive::Int(value) = self { Ok(*value) } else { Err(Raised) }
    }

    fn list(&self) -> Result<Rc<Vec<Naive>>> {
        if let Naive::List(items) = self { Ok(items.clone()) } else { Err(Raised) }
    }
}

fn equal(one: &Naive, two: &Naive) -> bool {
    one.show() == two.show()
}

const LIBRARY: [&str; 27] = [
    "+",
    "-",
    "*",
    "<",
    "<=",
    ">",
    ">=",
    "=",
    "not",
    "list",
    "cons",
    "first",
    "rest",
    "nth",
    "length",
    "append",
    "reverse",
    "range",
    "sort",
    "map",
    "pmap",
    "filter",
    "reduce",
    "any?",
    "all?",
    "raise",
    "log-message",
];

struct Evaluator<'t> {
    tree: &'t Tree,
    log: Vec<String>,
}

impl Evaluator<'_> {
    fn body(&mut self, nodes: &[NodeId], scope: &Scope) -> Result<Naive> {
        let mut value = Naive::Nil;
        for node in nodes {
            value = self.eval(*node, scope)?;
        }
        Ok(value)
    }

    fn eval(&mut self, node: NodeId, scope: &Scope) -> Result<Naive> {
        match self.tree.kind(node) {
            NodeKind::Int(value) => Ok(Naive::Int(value)),
            NodeKind::Bool(value) => Ok(Naive::Bool(value)),
            NodeKind::Nil => Ok(Naive::Nil),
            NodeKind::String => Ok(Naive::Text(self.tree.text(node).to_owned())),
            NodeKind::Quote => Ok(self.quoted(self.tree.items(node)[0])),
            NodeKind::Symbol => self.name(self.tree.text(node), scope),
            NodeKind::List => self.form(node, scope),
            other => panic!("the naive evaluator does not know {other:?}"),
        }
    }

    fn quoted(&self, node: NodeId) -> Naive {
        match self.tree.kind(node) {
            NodeKind::Int(value) => Naive::Int(value),
            NodeKind::Symbol => Naive::Symbol(self.tree.text(node).to_owned()),
            NodeKind::List => {
                Naive::List(Rc::new(self.tree.items(node).iter().map(|item| self.quoted(*item)).collect()))
            }
            other => panic!("the naive evaluator does not quote {other:?}"),
        }
    }

    fn name(&self, name: &str, scope: &Scope) -> Result<Naive> {
        if let Some(value) = scope.get(name) {
            return Ok(value);
        }
        let library = LIBRARY.iter().find(|known| **known == name);
        library.map(|name| Naive::Library(name)).ok_or(Raised)
    }

    fn form(&mut self, node: NodeId, scope: &Scope) -> Result<Naive> {
        let tree = self.tree;
        let items = tree.items(node).to_vec();
        let arguments = &items[1..];
        match tree.head(node).unwrap_or("") {
            "if" => {
                let chosen = if self.eval(arguments[0], scope)?.is_true() {
                    arguments.get(1)
                } else {
                    arguments.get(2)
                };
                chosen.map_or(Ok(Naive::Nil), |node| self.eval(*node, scope))
            }
            "cond" => {
                for clause in arguments {
                    let clause = tree.items(*clause).to_vec();
                    if tree.symbol(clause[0]) == Some("else") || self.eval(clause[0], scope)?.is_true() {
                        return self.body(&clause[1..], scope);
                    }
                }
                Ok(Naive::Nil)
            }
            "when" | "unless" => {
                let wanted = tree.head(node) == Some("when");
                if self.eval(arguments[0], scope)?.is_true() == wanted {
                    self.body(&arguments[1..], scope)
                } else {
                    Ok(Naive::Nil)
                }
            }
            "and" | "or" => {
                let and = tree.head(node) == Some("and");
                let mut value = Naive::Bool(and);
                for argument in arguments {
                    value = self.eval(*argument, scope)?;
                    if value.is_true() != and {
                        break;
                    }
                }
                Ok(value)
            }
            "progn" | "begin" => self.body(arguments, scope),
            "let" | "let*" | "letrec" => {
                let inner = Scope::new(Some(scope.clone()));
                let sees = if tree.head(node) == Some("let") { scope } else { &inner };
                for binding in tree.items(arguments[0]).to_vec() {
                    let pair = tree.items(binding).to_vec();
                    let value = self.eval(pair[1], sees)?;
                    inner.bind(tree.text(pair[0]), value);
                }
                self.body(&arguments[1..], &inner)
            }
            "define" | "bind" => {
                let value = self.eval(arguments[1], scope)?;
                scope.bind(tree.text(arguments[0]), value.clone());
                Ok(value)
            }
            "set!" => {
                let value = self.eval(arguments[1], scope)?;
                scope.set(tree.text(arguments[0]), value.clone())?;
                Ok(value)
            }
            "lambda" => Ok(self.function(arguments[0], &arguments[1..], scope)),
            "defun" => {
                let function = self.function(arguments[1], &arguments[2..], scope);
                scope.bind(tree.text(arguments[0]), function.clone());
                Ok(function)
            }
            "loop" => {
                let mut value = Naive::Nil;
                for _ in 0..self.eval(arguments[0], scope)?.int()? {
                    value = self.body(&arguments[1..], scope)?;
                }
                Ok(value)
            }
            "while" => {
                let most = self.eval(arguments[2], scope)?.int()?;
                let mut value = Naive::Nil;
                let mut turns = 0;
                while self.eval(arguments[0], scope)?.is_true() {
                    if turns == most {
                        return Err(Raised);
                    }
                    turns += 1;
                    value = self.body(&arguments[3..], scope)?;
                }
                Ok(value)
            }
            "try" => self.try_form(arguments, scope),
            "match" => self.match_form(arguments, scope),
            _ => {
                let function = self.eval(items[0], scope)?;
                let mut values = Vec::new();
                for argument in arguments {
                    values.push(self.eval(*argument, scope)?);
                }
                self.apply(&function, values)
            }
        }
    }

    fn function(&self, params: NodeId, body: &[NodeId], scope: &Scope) -> Naive {
        let params = self.tree.items(params).iter().map(|param| self.tree.text(*param).to_owned()).collect();
        Naive::Function(Rc::new(Function { params, body: body.to_vec(), scope: scope.clone() }))
    }

    fn try_form(&mut self, arguments: &[NodeId], scope: &Scope) -> Result<Naive> {
        let head = |node: &NodeId| self.tree.head(*node).unwrap_or("");
        let body: Vec<NodeId> =
            arguments.iter().copied().filter(|node| !["catch", "finally"].contains(&head(node))).collect();
        let clause = |name: &str| {
            arguments.iter().find(|node| head(node) == name).map(|node| self.tree.items(*node).to_vec())
        };
        let (catch, finally) = (clause("catch"), clause("finally"));
        let mut value = self.body(&body, scope);
        if let (Err(Raised), Some(catch)) = (&value, catch) {
            let inner = Scope::new(Some(scope.clone()));
            inner.bind(self.tree.text(self.tree.items(catch[1])[0]), Naive::Nil);
            value = self.body(&catch[2..], &inner);
        }
        if let Some(finally) = finally {
            self.body(&finally[1..], scope)?;
        }
        value
    }

    fn match_form(&mut self, arguments: &[NodeId], scope: &Scope) -> Result<Naive> {
        let value = self.eval(arguments[0], scope)?;
        for clause in &arguments[1..] {
            let clause = self.tree.items(*clause).to_vec();
            let inner = Scope::new(Some(scope.clone()));
            if self.fits(clause[0], &value, &inner) {
                return self.body(&clause[1..], &inner);
            }
        }
        Err(Raised)
    }

    fn fits(&self, pattern: NodeId, value: &Naive, scope: &Scope) -> bool {
        match self.tree.kind(pattern) {
            NodeKind::Symbol if self.tree.text(pattern) == "_" => true,
            NodeKind::Symbol => {
                scope.bind(self.tree.text(pattern), value.clone());
                true
            }
            NodeKind::List => {
                let items = self.tree.items(pattern);
                let Naive::List(values) = value else { return false };
                let values = match self.tree.text(items[0]) {
                    "list" => values.as_slice(),
                    tag => match values.split_first() {
                        Some((Naive::Symbol(name), rest)) if name == tag => rest,
                        _ => return false,
                    },
                };
                items.len() - 1 == values.len()
                    && items[1..].iter().zip(values).all(|(part, value)| self.fits(*part, value, scope))
            }
            NodeKind::Int(literal) => matches!(value, Naive::Int(value) if *value == literal),
            other => panic!("the naive evaluator does not match {other:?}"),
        }
    }

    fn apply(&mut self, function: &Naive, values: Vec<Naive>) -> Result<Naive> {
        match function {
            Naive::Function(function) => {
                if function.params.len() != values.len() {
                    return Err(Raised);
                }
                let scope = Scope::new(Some(function.scope.clone()));
                for (name, value) in function.params.iter().zip(values) {
                    scope.bind(name, value);
                }
                self.body(&function.body.clone(), &scope)
            }
            Naive::Library(name) => self.library(name, &values),
            _ => Err(Raised),
        }
    }

    fn library(&mut self, name: &str, values: &[Naive]) -> Result<Naive> {
        let int = |index: usize| values[index].int();
        let fold = |step: fn(i64, i64) -> Option<i64>| {
            let rest = values[1..].iter().map(Naive::int);
            let first = values[0].int()?;
            rest.into_iter().try_fold(first, |sum, next| step(sum, next?).ok_or(Raised)).map(Naive::Int)
        };
        let items = |list: Vec<Naive>| Naive::List(Rc::new(list));
        Ok(match name {
            "+" => fold(i64::checked_add)?,
            "-" => fold(i64::checked_sub)?,
            "*" => fold(i64::checked_mul)?,
            "<" => Naive::Bool(int(0)? < int(1)?),
            "<=" => Naive::Bool(int(0)? <= int(1)?),
            ">" => Naive::Bool(int(0)? > int(1)?),
            ">=" => Naive::Bool(int(0)? >= int(1)?),
            "=" => Naive::Bool(equal(&values[0], &values[1])),
            "not" => Naive::Bool(!values[0].is_true()),
            "list" => items(values.to_vec()),
            "cons" => items([vec![values[0].clone()], values[1].list()?.to_vec()].concat()),
            "first" => values[0].list()?.first().cloned().ok_or(Raised)?,
            "rest" => items(values[0].list()?.get(1..).ok_or(Raised)?.to_vec()),
            "nth" => {
                values[0].list()?.get(usize::try_from(int(1)?).map_err(|_| Raised)?).cloned().ok_or(Raised)?
            }
            "length" => Naive::Int(values[0].list()?.len() as i64),
            "append" => items([values[0].list()?.to_vec(), values[1].list()?.to_vec()].concat()),
            "reverse" => items(values[0].list()?.iter().rev().cloned().collect()),
            "range" => items((int(0)?..int(1)?).map(Naive::Int).collect()),
            "sort" => {
                let mut sorted = values[0].list()?.iter().map(Naive::int).collect::<Result<Vec<i64>>>()?;
                sorted.sort_unstable();
                items(sorted.into_iter().map(Naive::Int).collect())
            }
            "map" | "pmap" => {
                let mut done = Vec::new();
                for item in values[1].list()?.iter() {
                    done.push(self.apply(&values[0], vec![item.clone()])?);
                }
                items(done)
            }
            "filter" => {
                let mut kept = Vec::new();
                for item in values[1].list()?.iter() {
                    if self.apply(&values[0], vec![item.clone()])?.is_true() {
                        kept.push(item.clone());
                    }
                }
                items(kept)
            }
            "reduce" => {
                let mut sum = values[1].clone();
                for item in values[2].list()?.iter() {
                    sum = self.apply(&values[0], vec![sum, item.clone()])?;
                }
                sum
            }
            "any?" | "all?" => {
                let any = name == "any?";
                for item in values[1].list()?.iter() {
                    if self.apply(&values[0], vec![item.clone()])?.is_true() == any {
                        return Ok(Naive::Bool(any));
                    }
                }
                Naive::Bool(!any)
            }
            "log-message" => {
                self.log.push(values[0].show());
                Naive::Nil
            }
            _ => return Err(Raised),
        })
    }
}
