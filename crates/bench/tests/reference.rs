//! The statistics agree with scipy and statsmodels on random tables. `cargo xtask suites bench` installs both and runs this.
#![expect(
    clippy::disallowed_methods,
    reason = "a test panics when it fails, and does not go through the product's seams"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use fusee_bench::statistics::{
    CaseDifference, cases_needed, mcnemar, paired_interval, paired_permutation, pass_at_k, pass_hat_k, wilson,
};
use serde_json::Value;

#[test]
#[ignore = "needs scipy and statsmodels: cargo xtask suites bench"]
fn statistics_agree_with_scipy_and_statsmodels() {
    let tools =
        std::env::var_os("FUSEE_BENCH_TOOLS").expect("FUSEE_BENCH_TOOLS is set by cargo xtask suites");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference.py");
    let output = Command::new(Path::new(&tools).join("venv/bin/python")).arg(script).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut checked: BTreeMap<String, usize> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let float = |name: &str| row[name].as_f64().unwrap();
        let whole = |name: &str| row[name].as_u64().unwrap();
        let floats = |name: &str| -> Vec<f64> {
            row[name].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
        };
        let close = |found: f64, name: &str, within: f64| {
            let expected = float(name);
            assert!((found - expected).abs() <= within, "{name}: {found} instead of {expected} in {line}");
        };
        match row["kind"].as_str().unwrap() {
            "wilson" => {
                let found = wilson(whole("passed"), whole("n"), float("level"));
                close(found.low, "low", 1e-8);
                close(found.high, "high", 1e-8);
            }
            "mcnemar" => close(mcnemar(whole("a"), whole("b")), "p", 1e-10),
            "permutation" => {
                let (attempts, differences) = (floats("attempts"), floats("differences"));
                let cases: Vec<CaseDifference> = attempts
                    .iter()
                    .zip(&differences)
                    .map(|(n, d)| CaseDifference { difference: *d as i64, attempts: *n as u64 })
                    .collect();
                close(paired_permutation(&cases, 1), "p", 1e-9);
            }
            "pass" => {
                let (n, c, k) = (whole("n"), whole("c"), whole("k"));
                close(pass_at_k(n, c, k).unwrap(), "at", 1e-12);
                close(pass_hat_k(n, c, k).unwrap(), "hat", 1e-12);
            }
            "bootstrap" => {
                // Two random samples of a discrete distribution: their percentiles may be one step apart.
                let differences = floats("differences");
                let step = 1.0 / differences.len() as f64 + 0.01;
                let found = paired_interval(&differences, 1);
                close(found.low, "low", step);
                close(found.high, "high", step);
            }
            "power" => {
                let found = cases_needed(float("difference"), float("variance")).unwrap() as f64;
                close(found, "n", 1.0 + 0.001 * float("n"));
            }
            other => panic!("unknown row {other}"),
        }
        *checked.entry(row["kind"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(checked.len(), 6, "{checked:?}");
    assert!(checked.values().all(|count| *count >= 15), "{checked:?}");
}
