//! The special forms: one table, from which the compiler dispatches, the layout takes its shapes, the reference its
//! text and editors their completions. Library functions are in [`crate::builtin`].

use std::sync::LazyLock;

use fusee_text::sexpr::Indent;

use crate::table::Table;

/// A special form. No binding may take its name.
#[derive(Debug)]
pub struct Form {
    /// Its name.
    pub name: &'static str,
    /// How it looks.
    pub signature: &'static str,
    /// What it does, in a sentence.
    pub doc: &'static str,
    /// The group of forms it belongs to, which is its page of the manual.
    pub group: &'static str,
    pub(crate) indent: Indent,
    pub(crate) special: Special,
}

/// What the compiler makes of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Let,
    LetStar,
    Letrec,
    Define,
    Set,
    Lambda,
    Defun,
    If,
    Cond,
    When,
    Unless,
    And,
    Or,
    Match,
    Progn,
    Loop,
    While,
    Call,
    CallAtomicTask,
    AtomicTask,
    DirectTool,
    Defatom,
    GetContext,
    Spawn,
    DirectorLoop,
    IterativeLoop,
    Try,
    Clause,
    Retry,
    Assert,
    WithLimits,
    Params,
    Load,
    Quote,
}

impl Form {
    /// The form of this name.
    pub fn find(name: &str) -> Option<&'static Form> {
        static BY_NAME: LazyLock<Table<Form>> =
            LazyLock::new(|| FORMS.iter().map(|form| (form.name, form)).collect());
        BY_NAME.get(name).copied()
    }

    /// Every form, by group.
    pub fn all() -> &'static [Form] {
        FORMS
    }
}

const fn form(
    group: &'static str,
    name: &'static str,
    special: Special,
    indent: Indent,
    signature: &'static str,
    doc: &'static str,
) -> Form {
    Form { name, signature, doc, group, indent, special }
}

use Indent::{Align, Body};

static FORMS: &[Form] = &[
    form(
        "bind",
        "let",
        Special::Let,
        Body(1),
        "(let ((name expr) …) body …)",
        "Binds names side by side: no expression sees the names.",
    ),
    form(
        "bind",
        "let*",
        Special::LetStar,
        Body(1),
        "(let* ((name expr) …) body …)",
        "Binds names one after the other: each expression sees the names before it.",
    ),
    form(
        "bind",
        "letrec",
        Special::Letrec,
        Body(1),
        "(letrec ((name expr) …) body …)",
        "Binds names that functions among the expressions may use.",
    ),
    form(
        "bind",
        "define",
        Special::Define,
        Body(1),
        "(define name expr)",
        "Binds a name in the body, or for the whole workflow at its top.",
    ),
    form("bind", "bind", Special::Define, Body(1), "(bind name expr)", "The same as define."),
    form("bind", "set!", Special::Set, Body(1), "(set! name expr)", "Changes a name that is bound."),
    form("bind", "lambda", Special::Lambda, Body(1), "(lambda (name …) body …)", "A function."),
    form("bind", "defun", Special::Defun, Body(2), "(defun name (name …) body …)", "Defines a function."),
    form("bind", "quote", Special::Quote, Align, "(quote x), 'x", "The expression itself, as data."),
    form(
        "choose",
        "if",
        Special::If,
        Align,
        "(if test then else)",
        "One of two expressions; nil if the test is false and there is no second.",
    ),
    form(
        "choose",
        "cond",
        Special::Cond,
        Body(0),
        "(cond (test body …) … (else body …))",
        "The body of the first test that is true.",
    ),
    form(
        "choose",
        "when",
        Special::When,
        Body(1),
        "(when test body …)",
        "The body if the test is true, else nil.",
    ),
    form(
        "choose",
        "unless",
        Special::Unless,
        Body(1),
        "(unless test body …)",
        "The body if the test is false, else nil.",
    ),
    form(
        "choose",
        "and",
        Special::And,
        Align,
        "(and expr …)",
        "The first false value, else the last; true of nothing.",
    ),
    form(
        "choose",
        "or",
        Special::Or,
        Align,
        "(or expr …)",
        "The first true value, else the last; false of nothing.",
    ),
    form(
        "choose",
        "match",
        Special::Match,
        Body(1),
        "(match expr (pattern body …) …)",
        "The body of the first pattern that fits: a tag, a list, a map, a literal, a name.",
    ),
    form(
        "sequence",
        "progn",
        Special::Progn,
        Body(0),
        "(progn expr …)",
        "One after the other; the value of the last.",
    ),
    form("sequence", "begin", Special::Progn, Body(0), "(begin expr …)", "The same as progn."),
    form("sequence", "loop", Special::Loop, Body(1), "(loop n body …)", "The body n times; the last value."),
    form(
        "sequence",
        "while",
        Special::While,
        Body(1),
        "(while test :max n body …)",
        "The body while the test is true, at most n times; past that it raises.",
    ),
    form(
        "tasks",
        "call",
        Special::Call,
        Body(1),
        "(call name (key expr) …)",
        "Calls a task, workflow or tool by name.",
    ),
    form(
        "tasks",
        "call-atomic-task",
        Special::CallAtomicTask,
        Body(1),
        "(call-atomic-task name (key expr) …)",
        "Calls a task by name, or the one that fits a description.",
    ),
    form(
        "tasks",
        "atomic-task",
        Special::AtomicTask,
        Body(0),
        "(atomic-task (instructions s) (key expr) …)",
        "Runs a task that is written in place.",
    ),
    form(
        "tasks",
        "direct-tool",
        Special::DirectTool,
        Body(1),
        "(direct-tool name (key expr) …)",
        "Calls a tool by name.",
    ),
    form(
        "tasks",
        "defatom",
        Special::Defatom,
        Body(1),
        "(defatom name (params (p type) …) (instructions s) …)",
        "Defines a task.",
    ),
    form(
        "tasks",
        "get-context",
        Special::GetContext,
        Body(0),
        "(get-context (query s) …)",
        "What the project's index has on a query: { summary, matches }.",
    ),
    form(
        "tasks",
        "get_context",
        Special::GetContext,
        Body(0),
        "(get_context (query s) …)",
        "The same as get-context.",
    ),
    form("tasks", "spawn", Special::Spawn, Body(1), "(spawn description (key expr) …)", "Runs a subtask."),
    form(
        "tasks",
        "params",
        Special::Params,
        Body(0),
        "(params (name type :default v :doc s) …)",
        "Declares what the workflow is called with.",
    ),
    form(
        "tasks",
        "load",
        Special::Load,
        Align,
        "(load \"file\")",
        "Everything another workflow file defines.",
    ),
    form(
        "work",
        "director-evaluator-loop",
        Special::DirectorLoop,
        Body(0),
        "(director-evaluator-loop (max-iterations n) (initial-director-input e) (director f) (executor f) (evaluator f) (controller f))",
        "Plan, do, judge, decide, until the controller stops.",
    ),
    form(
        "work",
        "iterative-loop",
        Special::IterativeLoop,
        Body(0),
        "(iterative-loop (max-iterations n) (initial-input e) (test-command e) (executor f) (validator f) (controller f))",
        "Do, test, decide, until the controller stops.",
    ),
    form(
        "failure",
        "try",
        Special::Try,
        Body(0),
        "(try body … (catch (e) …) (finally …))",
        "The body; if it fails, the catch; in any case the finally.",
    ),
    form(
        "failure",
        "catch",
        Special::Clause,
        Body(1),
        "(catch (e) body …)",
        "Inside try: what to do with the error e.",
    ),
    form(
        "failure",
        "finally",
        Special::Clause,
        Body(0),
        "(finally body …)",
        "Inside try: what to do in any case.",
    ),
    form(
        "failure",
        "retry",
        Special::Retry,
        Body(1),
        "(retry n :backoff s expr)",
        "The expression, at most n times until it does not fail, with waits of s, 2s, 4s … seconds.",
    ),
    form(
        "failure",
        "assert",
        Special::Assert,
        Align,
        "(assert test message)",
        "Fails unless the test is true.",
    ),
    form(
        "failure",
        "with-limits",
        Special::WithLimits,
        Body(1),
        "(with-limits (:turns n :tokens n :seconds n :usd n) expr …)",
        "The expressions within these limits.",
    ),
];
