//! The table of special forms. The compiler's dispatch, the formatter's indentation, the reference text and
//! editor completions are all derived from it. Library functions are in [`crate::builtin`].

use std::sync::LazyLock;

use fusee_text::sexpr::Indent;

use crate::lookup::LookupTable;

/// A special form. Its name cannot be bound.
#[derive(Debug)]
pub struct SpecialForm {
    /// Name of the form.
    pub name: &'static str,
    /// Syntax of the form.
    pub signature: &'static str,
    /// One-sentence description.
    pub doc: &'static str,
    /// Group of forms, which is also its page in `spec/language`.
    pub group: &'static str,
    pub(crate) indent: Indent,
    pub(crate) special: Special,
}

/// Selects the compiler's handler of a form; synonyms share one.
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

impl SpecialForm {
    /// Looks up a form by name.
    pub fn find(name: &str) -> Option<&'static SpecialForm> {
        static BY_NAME: LazyLock<LookupTable<SpecialForm>> =
            LazyLock::new(|| FORMS.iter().map(|form| (form.name, form)).collect());
        BY_NAME.get(name).copied()
    }

    /// All forms, ordered by group.
    pub fn all() -> &'static [SpecialForm] {
        FORMS
    }
}

/// Declares the table: groups of rows with name, handler, indentation, syntax and description.
macro_rules! forms {
    ($([$group:literal] $($name:literal $special:ident $indent:ident$(($count:literal))? $signature:literal $doc:literal;)*)*) => {
        &[$($(SpecialForm {
            name: $name,
            signature: $signature,
            doc: $doc,
            group: $group,
            indent: Indent::$indent$(($count))?,
            special: Special::$special,
        }),*),*]
    };
}

static FORMS: &[SpecialForm] = forms! {
    ["bind"]
    "let" Let Body(1) "(let ((name expr) …) body …)"
        "Binds names in parallel: the expressions do not see each other's names.";
    "let*" LetStar Body(1) "(let* ((name expr) …) body …)"
        "Binds names in sequence: each expression sees the names before it.";
    "letrec" Letrec Body(1) "(letrec ((name expr) …) body …)"
        "Binds names that are visible to functions in all the expressions.";
    "define" Define Body(1) "(define name expr)"
        "Binds a name in the enclosing body, or globally at the top level.";
    "bind" Define Body(1) "(bind name expr)" "Same as define.";
    "set!" Set Body(1) "(set! name expr)" "Assigns to a bound name.";
    "lambda" Lambda Body(1) "(lambda (name …) body …)" "Creates a function.";
    "defun" Defun Body(2) "(defun name (name …) body …)" "Defines a function.";
    "quote" Quote Align "(quote x), 'x" "Returns the expression as data, unevaluated.";
    ["choose"]
    "if" If Align "(if test then else)"
        "Evaluates one of two expressions; nil if the test is false and there is no else.";
    "cond" Cond Body(0) "(cond (test body …) … (else body …))"
        "Evaluates the body of the first clause whose test is true.";
    "when" When Body(1) "(when test body …)" "Evaluates the body if the test is true, else returns nil.";
    "unless" Unless Body(1) "(unless test body …)"
        "Evaluates the body if the test is false, else returns nil.";
    "and" And Align "(and expr …)" "Returns the first false value, else the last; true without arguments.";
    "or" Or Align "(or expr …)" "Returns the first true value, else the last; false without arguments.";
    "match" Match Body(1) "(match expr (pattern body …) …)"
        "Evaluates the body of the first matching pattern: a tag, list, map, literal or name.";
    ["sequence"]
    "progn" Progn Body(0) "(progn expr …)" "Evaluates expressions in order and returns the last value.";
    "begin" Progn Body(0) "(begin expr …)" "Same as progn.";
    "loop" Loop Body(1) "(loop n body …)" "Evaluates the body n times and returns the last value.";
    "while" While Body(1) "(while test :max n body …)"
        "Repeats the body while the test is true; raises after n iterations.";
    ["tasks"]
    "call" Call Body(1) "(call name (key expr) …)" "Calls a task, workflow or tool by name.";
    "call-atomic-task" CallAtomicTask Body(1) "(call-atomic-task name (key expr) …)"
        "Calls a task by name, or the one that best matches a description.";
    "atomic-task" AtomicTask Body(0) "(atomic-task (instructions s) (key expr) …)"
        "Runs a task defined inline.";
    "direct-tool" DirectTool Body(1) "(direct-tool name (key expr) …)" "Calls a tool by name.";
    "defatom" Defatom Body(1) "(defatom name (params (p type) …) (instructions s) …)" "Defines a task.";
    "get-context" GetContext Body(0) "(get-context (query s) …)"
        "Queries the project's file index: { summary, matches }.";
    "get_context" GetContext Body(0) "(get_context (query s) …)" "Same as get-context.";
    "spawn" Spawn Body(1) "(spawn description (key expr) …)" "Runs a subtask.";
    "params" Params Body(0) "(params (name type :default v :doc s) …)"
        "Declares the parameters of the workflow.";
    "load" Load Align "(load \"file\")" "Loads the definitions of another workflow file.";
    ["work"]
    "director-evaluator-loop" DirectorLoop Body(0) "(director-evaluator-loop (max-iterations n) (initial-director-input e) (director f) (executor f) (evaluator f) (controller f))"
        "Repeats director, executor, evaluator and controller until the controller stops.";
    "iterative-loop" IterativeLoop Body(0) "(iterative-loop (max-iterations n) (initial-input e) (test-command e) (executor f) (validator f) (controller f))"
        "Repeats executor, validator and controller until the controller stops.";
    ["failure"]
    "try" Try Body(0) "(try body … (catch (e) …) (finally …))"
        "Evaluates the body, the catch if it fails, and always the finally.";
    "catch" Clause Body(1) "(catch (e) body …)" "Inside try: handles the error e.";
    "finally" Clause Body(0) "(finally body …)" "Inside try: always evaluated.";
    "retry" Retry Body(1) "(retry n :backoff s expr)"
        "Evaluates the expression up to n times until it succeeds, waiting s, 2s, 4s … seconds in between.";
    "assert" Assert Align "(assert test message)" "Fails unless the test is true.";
    "with-limits" WithLimits Body(1) "(with-limits (:turns n :tokens n :seconds n :usd n) expr …)"
        "Evaluates the expressions within these limits.";
};
