//! Fuzzes the workflow machine: a program that passes the checker ends within its limits and is
//! deterministic.
#![no_main]

use std::sync::Arc;

use fusee_lang::{
    Callable, Catalog, EffectKind, ResumeInput, EvaluationLimits, Machine, NoFiles, Param, ParamType, Program, TaskResult, Yield,
    compile,
};
use fusee_text::Source;
use libfuzzer_sys::fuzz_target;

const LIMITS: EvaluationLimits = EvaluationLimits { steps: 20_000, depth: 200, memory: 4 << 20, slice: 1_000 };
const MAX_ANSWERS: usize = 200;

fuzz_target!(|text: &str| {
    let mut catalog = Catalog::new();
    catalog.add(Callable::task("echo", [Param::required("text", ParamType::Any)]));
    catalog.add(Callable::tool("shell", [Param::required("command", ParamType::String)]));
    let compiled = compile(&Source::new("fuzz", text), &catalog, &mut NoFiles);
    if let Some(program) = compiled.program {
        let first = run(&program);
        assert_eq!(first, run(&program), "not the same again");
    }
});

fn run(program: &Arc<Program>) -> String {
    let Ok(machine) = Machine::start(program, &serde_json::Map::new(), LIMITS) else {
        return "inputs".to_owned();
    };
    let mut answers = MAX_ANSWERS;
    match drive(machine, &mut answers, 3) {
        Ok(value) => value.display(1_000),
        Err(end) => end,
    }
}

/// Runs the machine to its end: answers every effect, runs branches sequentially, and stops when `answers` is
/// used up.
fn drive(mut machine: Machine, answers: &mut usize, nesting: usize) -> Result<fusee_lang::Value, String> {
    let mut input = ResumeInput::Go;
    loop {
        let effect = match machine.resume(input) {
            Yield::Done(value) => {
                let _ = value.to_json();
                return Ok(value);
            }
            Yield::Fault(fault) => {
                let _ = fault.to_json();
                return Err(fault.to_string());
            }
            Yield::Pause => {
                input = ResumeInput::Go;
                continue;
            }
            Yield::Effect(effect) => effect,
        };
        if *answers == 0 {
            return Err("enough".to_owned());
        }
        *answers -= 1;
        input = match effect.kind {
            EffectKind::Task(call) => ResumeInput::Reply(TaskResult::complete(format!("{:?}", call.inputs))),
            EffectKind::Tool(call) => ResumeInput::Reply(TaskResult::complete(call.name.to_string())),
            EffectKind::Context(_) | EffectKind::AskUser { .. } => ResumeInput::Json(serde_json::json!("yes")),
            EffectKind::FanOut(_) if nesting == 0 => return Err("deep enough".to_owned()),
            EffectKind::FanOut(fan_out) => {
                let mut values = Vec::new();
                for index in 0..fan_out.len() {
                    match fan_out.machine(index) {
                        Some(element) => values.push(drive(element, answers, nesting - 1)?),
                        None => return Err("a branch is missing".to_owned()),
                    }
                }
                ResumeInput::Branches(values)
            }
            EffectKind::Log { .. } | EffectKind::Wait { .. } => ResumeInput::Go,
            EffectKind::EnterLimits { .. } | EffectKind::LeaveLimits { .. } => ResumeInput::Go,
        };
    }
}
