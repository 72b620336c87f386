//! The model against cases whose result can be computed by hand.

use super::{Measured, Scenario, simulate};

const PLAIN: Measured = Measured { entry_us: 1_000, turn_us: 2_000, entries: 3, log_bytes: 0, run_kib: 0 };

fn scenario(concurrent: u64, runs: u64) -> Scenario {
    Scenario {
        name: "test",
        concurrent,
        runs,
        turns: 10,
        model_ms: 100,
        tokens: 1_000,
        model_slots: concurrent,
        engine_cores: 1,
        worker_cores: 1,
    }
}

#[test]
fn a_run_that_is_alone_waits_for_nobody() {
    let found = simulate(&scenario(1, 4), &PLAIN);
    // 100 ms for the model, 2 ms for the worker and 3 ms for the engine, in 40 turns.
    assert!((found.seconds - 4.2).abs() < 1e-9, "{found:?}");
    assert!((found.added_ms - 5.0).abs() < 1e-9, "{found:?}");
    assert!((found.runs_per_min - 4.0 * 60.0 / 4.2).abs() < 1e-9, "{found:?}");
    assert!((found.engine - 0.12 / 4.2).abs() < 1e-9, "{found:?}");
}

#[test]
fn an_engine_with_too_much_to_do_bounds_the_entries_and_makes_runs_wait() {
    let found = simulate(&scenario(200, 400), &PLAIN);
    // 3 ms for each turn on one processor.
    assert!(found.steps_per_s > 900.0 && found.steps_per_s <= 1_000.0, "{found:?}");
    assert!(found.engine > 0.95 && found.added_ms > 100.0, "{found:?}");
    let more = simulate(&Scenario { engine_cores: 12, worker_cores: 8, ..scenario(200, 400) }, &PLAIN);
    assert!(more.engine < 0.6 && more.added_ms < found.added_ms / 4.0, "{more:?}");
}

#[test]
fn a_model_with_too_few_places_bounds_the_runs() {
    let found = simulate(&Scenario { model_slots: 10, ..scenario(50, 100) }, &PLAIN);
    assert!(found.model > 0.95, "{found:?}");
    assert!(found.tokens_per_s <= 100_000.0, "ten places, ten replies a second each: {found:?}");
}
