//! Numbers round-trip exactly; otherwise a replay would report differences that do not exist.

use fusee_journal::{DurableRun, RunStatus, StepKind};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::kit::*;

fn survives(values: &Value) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let place = Place::new();
        let journal = place.open();
        let engine = begin(&journal, "r").await;
        let asked = || call(StepKind::Tool, "t", values.clone());
        engine.record_step(asked(), gives(values.clone())).await.expect("runs");
        engine.finish(RunStatus::Completed).await.expect("ended");
        let engine = replay(&journal, "r");
        let back = engine.record_step(asked(), never()).await.expect("the same arguments");
        assert_eq!(&back.value, values);
    });
}

#[test]
fn the_ends_of_the_ranges_survive() {
    survives(&json!([
        u64::MAX,
        i64::MIN,
        i64::MAX,
        0,
        -1,
        1.0,
        -0.0,
        0.1,
        0.7,
        1e300,
        f64::MIN_POSITIVE,
        f64::MAX,
        5e-324,
        1.7976931348623157e308,
        122.416_294_033_786_58,
        9007199254740993_u64
    ]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn any_number_survives(
        floats in prop::collection::vec(prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL, 400),
        integers in prop::collection::vec(any::<u64>(), 20),
    ) {
        survives(&json!([floats, integers]));
    }
}
