//! Verifies a suite on this machine: every reference solution passes the tests, every stub fails them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Outcome;
use crate::process::{Confinement, Ended, Job, find};
use crate::suite::{Exercise, Suite};
use crate::working_copy::WorkingCopy;

/// Time limit of one run of the tests.
pub(crate) const TEST_LIMIT: Duration = Duration::from_secs(60);

/// Checks every exercise; the error lists those that are wrong and those that could not be checked.
pub(crate) fn run(suite: &Suite, confinement: Confinement) -> Outcome {
    let copy = WorkingCopy::claim()?;
    let mut missing: BTreeMap<String, usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for exercise in &suite.exercises {
        let (program, package) = exercise.language.program();
        if find(program).is_none() {
            *missing.entry(format!("{program} is missing (Debian package {package})")).or_default() += 1;
            continue;
        }
        match check(exercise, &copy, confinement)? {
            Ok(seconds) => println!("ok    {} ({seconds:.1} s)", exercise.name),
            Err(fault) => {
                println!("WRONG {}: {fault}", exercise.name);
                faults.push(exercise.name.as_str());
            }
        }
    }
    for (program, exercises) in &missing {
        println!("{program}: {exercises} exercises not checked");
    }
    let unchecked: usize = missing.values().sum();
    if faults.is_empty() && unchecked == 0 {
        println!("{} exercises: every reference passes, every stub fails", suite.exercises.len());
        return Ok(());
    }
    Err(format!("{} exercises wrong, {unchecked} not checked: {}", faults.len(), faults.join(", ")))
}

/// Checks one exercise: the seconds that its reference took, or what is wrong with it.
fn check(exercise: &Exercise, copy: &WorkingCopy, confinement: Confinement) -> Outcome<Result<f64, String>> {
    if exercise.reference.len() != exercise.solution.len() {
        return Ok(Err("the reference solution does not cover every solution file".to_owned()));
    }
    let log = copy.root().join("check.log");
    copy.reset(exercise)?;
    copy.install_reference(exercise)?;
    let _ = std::fs::remove_file(&log);
    let reference = run_tests(exercise, copy, confinement, &log)?;
    if !passed(&reference) {
        let output = std::fs::read_to_string(&log).unwrap_or_default();
        return Ok(Err(format!("the reference solution fails\n{output}")));
    }
    copy.reset(exercise)?;
    let stub = run_tests(exercise, copy, confinement, &log)?;
    if passed(&stub) {
        return Ok(Err("the stub passes".to_owned()));
    }
    if stub.timed_out {
        return Ok(Err("the stub does not end".to_owned()));
    }
    Ok(Ok(reference.seconds))
}

/// Runs the tests of an exercise in the working copy, offline.
pub(crate) fn run_tests(
    exercise: &Exercise,
    copy: &WorkingCopy,
    confinement: Confinement,
    log: &std::path::Path,
) -> Outcome<Ended> {
    let words = exercise.test_command.split(' ').map(Into::into).collect();
    let environment = Vec::new();
    Job { words, environment, confinement, network: false, limit: TEST_LIMIT, log }.run(copy)
}

/// Whether the tests passed.
pub(crate) fn passed(tests: &Ended) -> bool {
    tests.code == Some(0)
}
