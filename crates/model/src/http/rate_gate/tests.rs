//! Waiting times at the rate gate, in paused time.

use std::sync::Arc;

use super::*;

async fn pass(gate: &RateGate) -> (Duration, Vec<u64>) {
    let begin = Instant::now();
    let mut waits = Vec::new();
    let mut sink = |delta: ReplyDelta<'_>| {
        if let ReplyDelta::Waiting { ms } = delta {
            waits.push(ms);
        }
    };
    gate.pass(&mut sink).await;
    (begin.elapsed(), waits)
}

#[tokio::test(start_paused = true)]
async fn an_open_gate_costs_nothing() {
    assert_eq!(pass(&RateGate::default()).await, (Duration::ZERO, vec![]));
}

#[tokio::test(start_paused = true)]
async fn all_wait_and_go_on_one_after_the_other() {
    let gate = Arc::new(RateGate::default());
    gate.hold(Duration::from_secs(2));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let gate = gate.clone();
            tokio::spawn(async move { pass(&gate).await })
        })
        .collect();
    for (place, task) in tasks.into_iter().enumerate() {
        let expected = 2_000 + 10 * place as u64;
        assert_eq!(task.await.unwrap(), (Duration::from_millis(expected), vec![expected]));
    }
    assert_eq!(pass(&gate).await.0, Duration::ZERO, "then it is open");
}

#[tokio::test(start_paused = true)]
async fn a_longer_wait_wins_also_over_those_who_wait_already() {
    let gate = Arc::new(RateGate::default());
    gate.hold(Duration::from_secs(1));
    gate.hold(Duration::from_millis(10));
    let waiting = {
        let gate = gate.clone();
        tokio::spawn(async move { pass(&gate).await })
    };
    tokio::time::sleep(Duration::from_millis(500)).await;
    gate.hold(Duration::from_secs(3));
    assert_eq!(waiting.await.unwrap(), (Duration::from_millis(3_500), vec![1_000, 2_500]));
}

#[tokio::test(start_paused = true)]
async fn an_absurd_wait_is_bounded() {
    let gate = RateGate::default();
    gate.hold(Duration::from_secs(u64::MAX / 1_000));
    assert_eq!(pass(&gate).await.0, MAX_WAIT);
}
