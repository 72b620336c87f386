//! Benchmark of the machine: fib(25) compared with python3, and the start-up time of large workflows.
//!
//! Run with `cargo run --release -p fusee-lang --example fib`.

use std::process::Command;
use std::time::{Duration, Instant};

use fusee_lang::{Catalog, EvaluationLimits, Machine, NoFiles, ResumeInput, Yield, compile};
use fusee_text::Source;
use serde_json::Map as JsonMap;

const RUNS: usize = 9;
const FIB: &str = "(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))\n(fib 25)";
const PYTHON: &str = "
import time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
times = []
for _ in range(9):
    begun = time.perf_counter()
    assert fib(25) == 75025
    times.append(time.perf_counter() - begun)
print(sorted(times)[4])
";

#[expect(clippy::print_stdout, reason = "a benchmark prints its results")]
fn main() -> Result<(), String> {
    let ours = median(|| {
        let mut machine = start(FIB)?;
        let begun = Instant::now();
        let value = run(&mut machine)?;
        if value == "75025" { Ok(begun.elapsed()) } else { Err(format!("fib(25) is not {value}")) }
    })?;
    println!("fib(25) fusee:           {:6.2} ms", milliseconds(ours));
    match python() {
        Some(theirs) => {
            println!("fib(25) python3:         {:6.2} ms", milliseconds(theirs));
            println!("ratio:                   {:6.2}", ours.as_secs_f64() / theirs.as_secs_f64());
        }
        None => println!("python3 not found, no ratio"),
    }
    let forms: String =
        (0..250).map(|n| format!("(defun f{n} (x) (list x (string-append \"{n}\" \"b\")))\n")).collect();
    println!("start of 1000 forms:     {:6.2} ms", milliseconds(median(|| beginning(&forms))?));
    let functions: String = (0..1000)
        .map(|n| format!("(defun f{n} (x) (if (< x {n}) (list x \"text {n}\") (f0 (- x 1))))\n"))
        .collect();
    println!("start of 1000 functions: {:6.2} ms", milliseconds(median(|| beginning(&functions))?));
    Ok(())
}

/// Time from source text to the end of all definitions.
fn beginning(text: &str) -> Result<Duration, String> {
    let begun = Instant::now();
    run(&mut start(text)?)?;
    Ok(begun.elapsed())
}

fn start(text: &str) -> Result<Machine, String> {
    let compiled = compile(&Source::new("bench.fusee", text), &Catalog::new(), &mut NoFiles);
    let program = compiled.program.ok_or_else(|| format!("{:?}", compiled.diagnostics.into_sorted()))?;
    Machine::start(&program, &JsonMap::new(), EvaluationLimits::default())
        .map_err(|problems| format!("{problems:?}"))
}

fn run(machine: &mut Machine) -> Result<String, String> {
    loop {
        match machine.resume(ResumeInput::Go) {
            Yield::Done(value) => return Ok(value.display(100)),
            Yield::Pause => {}
            Yield::Fault(fault) => return Err(fault.to_string()),
            Yield::Effect(effect) => return Err(format!("{} in a pure program", effect.kind.name())),
        }
    }
}

fn median(mut run: impl FnMut() -> Result<Duration, String>) -> Result<Duration, String> {
    let mut times = (0..RUNS).map(|_| run()).collect::<Result<Vec<_>, _>>()?;
    times.sort_unstable();
    Ok(times[RUNS / 2])
}

#[expect(clippy::disallowed_methods, reason = "the baseline is another program")]
fn python() -> Option<Duration> {
    let output = Command::new("python3").args(["-c", PYTHON]).output().ok()?;
    let seconds: f64 = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
    Some(Duration::from_secs_f64(seconds))
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
