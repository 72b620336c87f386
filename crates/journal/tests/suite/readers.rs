//! Subscribers of a live run: each sees every number once, as an event or inside a gap, whatever its pace.

use std::sync::Arc;
use std::time::Duration;

use fusee_journal::{Branch, DurableRun, Event, EventRecord, EventStream, RunStatus, SqliteRun};
use proptest::prelude::*;

use crate::kit::*;

async fn rest(events: &mut EventStream) -> Vec<Arc<EventRecord>> {
    let mut seen = Vec::new();
    while let Some(event) = events.next().await.expect("readable") {
        seen.push(event);
    }
    seen
}

/// Checks the invariant of every subscription: numbers increase, and each is an event or lies in a gap.
#[track_caller]
fn hold_together(seen: &[Arc<EventRecord>], from: u64) {
    let mut next = from + 1;
    for stamped in seen {
        match stamped.event {
            Event::Gap { from, to } => {
                assert_eq!((from, to), (next, stamped.seq), "a gap says exactly what is missing");
            }
            _ => assert_eq!(stamped.seq, next, "{stamped:?}"),
        }
        next = stamped.seq + 1;
    }
}

fn gaps(seen: &[Arc<EventRecord>]) -> Vec<(u64, u64)> {
    seen.iter()
        .filter_map(|stamped| match stamped.event {
            Event::Gap { from, to } => Some((from, to)),
            _ => None,
        })
        .collect()
}

fn without_deltas(seen: &[Arc<EventRecord>]) -> Vec<String> {
    texts(seen.iter().map(AsRef::as_ref))
}

#[tokio::test]
async fn an_event_is_seen_when_it_is_committed_and_a_delta_at_once() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let mut events = engine.events();
    engine.emit(&Branch::main(), message("later"));
    engine.publish_delta(&Branch::main(), piece("now"));
    let first = events.next().await.expect("readable").expect("an event");
    assert_eq!(first.event, Event::MessageDelta { text: "now".to_owned() });
    assert!(tokio::time::timeout(Duration::from_millis(50), events.next()).await.is_err());
    engine.flush().await.expect("committed");
    let second = events.next().await.expect("readable").expect("an event");
    assert_eq!((second.seq, &second.event), (2, &message("later")));
    engine.finish(RunStatus::Completed).await.expect("ended");
    assert!(events.next().await.expect("readable").is_none());
}

#[tokio::test]
async fn a_reader_that_stands_still_blocks_nobody_and_catches_up_from_the_journal() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let (mut slow, mut quick) = (engine.events(), engine.events());
    let mut seen = Vec::new();
    for n in 0..3000 {
        if n % 3 == 0 {
            engine.publish_delta(&Branch::main(), piece("dropped"));
        }
        engine.emit(&Branch::main(), message(n.to_string()));
        if n % 10 == 9 {
            engine.flush().await.expect("nobody is waited for");
            while seen.len() < (n + 1) + n / 3 + 1 {
                seen.push(quick.next().await.expect("readable").expect("an event"));
            }
        }
    }
    engine.finish(RunStatus::Completed).await.expect("ended");
    let all: Vec<_> = (0..3000).map(|n| n.to_string()).collect();
    assert_eq!((without_deltas(&seen), gaps(&seen)), (all.clone(), vec![]));
    hold_together(&seen, 0);

    let seen = rest(&mut slow).await;
    hold_together(&seen, 0);
    assert_eq!(without_deltas(&seen), all);
    let lost: u64 = gaps(&seen).iter().map(|(from, to)| to - from + 1).sum();
    let kept = seen.iter().filter(|it| matches!(it.event, Event::MessageDelta { .. })).count() as u64;
    assert_eq!(lost + kept, 1000);
    assert!(lost > 700, "{lost}");
}

#[tokio::test]
async fn deltas_that_fill_the_ring_while_a_commit_is_under_way_hide_nothing() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let mut events = engine.events();
    engine.emit(&Branch::main(), message("committed"));
    let held = place.hold_writers();
    let mut flushing = engine.flush();
    assert!(poll_once(&mut flushing).is_pending());
    tokio::time::sleep(Duration::from_millis(50)).await;
    for _ in 0..2000 {
        engine.publish_delta(&Branch::main(), piece("x"));
    }
    // Events after a commit in flight are not shown before it.
    assert!(tokio::time::timeout(Duration::from_millis(50), events.next()).await.is_err());
    drop(held);
    flushing.await.expect("committed");
    engine.finish(RunStatus::Completed).await.expect("ended");
    let seen = rest(&mut events).await;
    hold_together(&seen, 0);
    assert_eq!(without_deltas(&seen), ["committed"]);
    assert_eq!(seen.last().expect("events").seq, 2001);
}

#[tokio::test]
async fn a_reader_that_comes_late_reads_from_where_the_run_was_opened() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    for n in 0..100 {
        engine.emit(&Branch::main(), message(n.to_string()));
        engine.flush().await.expect("committed");
    }
    drop(engine);
    let engine = resume(&journal, "r");
    for n in 100..200 {
        engine.note(&Branch::main(), message(n.to_string()));
        engine.publish_delta(&Branch::main(), piece("nobody sees it"));
        engine.flush().await.expect("committed");
    }
    let mut late = engine.events();
    engine.note(&Branch::main(), message("200"));
    engine.finish(RunStatus::Completed).await.expect("ended");
    let seen = rest(&mut late).await;
    hold_together(&seen, 100);
    assert_eq!(without_deltas(&seen), (100..=200).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn large_events_are_not_kept_for_readers() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let mut events = engine.events();
    let mut weak = Vec::new();
    for n in 0..100 {
        engine.emit(&Branch::main(), message(format!("{n}{}", "x".repeat(100_000))));
        engine.flush().await.expect("committed");
        weak.push(Arc::downgrade(&events.next().await.expect("readable").expect("an event")));
    }
    let kept = weak.iter().filter(|it| it.strong_count() > 0).count();
    assert!(kept < 10, "{kept} events of 100 kB are in memory");
}

async fn part(engine: Arc<SqliteRun>, branch: Branch, seed: u64) {
    let mut random = seed;
    for n in 0..150 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        for _ in 0..(random >> 60) {
            engine.publish_delta(&branch, piece("d"));
        }
        engine.emit(&branch, message(n.to_string()));
        match (random >> 33) % 4 {
            0 => engine.flush().await.expect("committed"),
            1 => drop(poll_once(&mut engine.flush())),
            2 => tokio::task::yield_now().await,
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_the_order_of_deltas_and_commits_every_reader_sees_every_number_once() {
    let place = Place::new();
    let journal = place.open();
    for round in 0..6 {
        let name = format!("r{round}");
        let engine = begin(&journal, &name).await;
        let readers: Vec<_> = (0..4)
            .map(|pace| {
                let mut events = engine.events();
                tokio::spawn(async move {
                    let mut seen = Vec::new();
                    while let Some(event) = events.next().await.expect("readable") {
                        seen.push(event);
                        if pace > 0 && seen.len() % (200 >> pace) == 0 {
                            tokio::time::sleep(Duration::from_millis(pace)).await;
                        }
                    }
                    seen
                })
            })
            .collect();
        let parts: Vec<_> = (0..6)
            .map(|n| tokio::spawn(part(Arc::clone(&engine), Branch::main().child(n), round * 100 + n)))
            .collect();
        for part in parts {
            part.await.expect("it ends");
        }
        engine.finish(RunStatus::Completed).await.expect("ended");
        let recorded = journaled(&journal, &name);
        assert_eq!(recorded.len(), 900);
        for reader in readers {
            let seen = reader.await.expect("it ends");
            hold_together(&seen, 0);
            let events: Vec<_> = seen
                .iter()
                .filter(|it| matches!(it.event, Event::Message { .. }))
                .map(|it| EventRecord::clone(it))
                .collect();
            assert_eq!(events, recorded, "in round {round}");
        }
    }
}

/// An action on a run or on its subscribers.
#[derive(Clone, Debug)]
enum Happening {
    Emit {
        part: u8,
    },
    Pass {
        count: usize,
    },
    /// Starts a commit without waiting for it.
    Commit,
    Flush,
    /// Blocks all writers until `Release`.
    Hold,
    Release,
    Read {
        reader: usize,
        count: usize,
    },
    Join,
    Leave {
        reader: usize,
    },
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (0..3_u8).prop_map(|part| Happening::Emit { part }),
        3 => (1..400_usize).prop_map(|count| Happening::Pass { count }),
        3 => Just(Happening::Commit),
        1 => Just(Happening::Flush),
        1 => Just(Happening::Hold),
        1 => Just(Happening::Release),
        5 => (0..3_usize, 1..300_usize).prop_map(|(reader, count)| Happening::Read { reader, count }),
        1 => Just(Happening::Join),
        1 => (0..3_usize).prop_map(|reader| Happening::Leave { reader }),
    ]
}

/// Reads at most `count` of the available events.
fn read_some(events: &mut EventStream, seen: &mut Vec<Arc<EventRecord>>, count: usize) {
    for _ in 0..count {
        match poll_once(&mut Box::pin(events.next())) {
            std::task::Poll::Ready(event) => seen.extend(event.expect("readable")),
            std::task::Poll::Pending => break,
        }
    }
}

async fn live_through(happenings: Vec<Happening>) {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let (mut readers, mut held, mut made) = (vec![(engine.events(), Vec::new())], None, 0);
    for happening in happenings {
        match happening {
            Happening::Emit { part } => {
                engine.emit(&Branch::main().child(part), message(made.to_string()));
                made += 1;
            }
            Happening::Pass { count } => {
                (0..count).for_each(|_| engine.publish_delta(&Branch::main(), piece("d")))
            }
            Happening::Commit => drop(poll_once(&mut engine.flush())),
            Happening::Flush if held.is_none() => engine.flush().await.expect("committed"),
            Happening::Hold if held.is_none() => {
                engine.flush().await.expect("committed");
                held = Some(place.hold_writers());
            }
            Happening::Flush | Happening::Hold => {}
            Happening::Release => held = None,
            Happening::Read { reader, count } => {
                if let Some((events, seen)) = readers.get_mut(reader) {
                    read_some(events, seen, count);
                }
            }
            Happening::Join => readers.push((engine.events(), Vec::new())),
            Happening::Leave { reader } => {
                if reader < readers.len() {
                    let (_, seen) = readers.swap_remove(reader);
                    hold_together(&seen, 0);
                }
            }
        }
    }
    drop(held);
    engine.finish(RunStatus::Completed).await.expect("ended");
    let recorded = journaled(&journal, "r");
    assert_eq!(texts(&recorded), (0..made).map(|n| n.to_string()).collect::<Vec<_>>());
    for (mut events, mut seen) in readers {
        seen.extend(rest(&mut events).await);
        hold_together(&seen, 0);
        let messages = seen.iter().filter(|it| matches!(it.event, Event::Message { .. }));
        assert!(messages.map(AsRef::as_ref).eq(&recorded), "a reader missed something");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn whatever_happens_every_number_is_an_event_or_in_a_gap(happenings in prop::collection::vec(happening(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(live_through(happenings));
    }
}

#[tokio::test]
async fn a_subscriber_to_recorded_events_sees_all_of_them_and_no_delta() {
    let place = Place::new();
    let journal = place.open();
    let engine = begin(&journal, "r").await;
    let (mut all, mut recorded) = (engine.events(), engine.events().recorded());
    let mut expected = Vec::new();
    for round in 0..20 {
        // More than the buffer holds, in some rounds.
        for _ in 0..if round % 5 == 0 { 700 } else { 30 } {
            engine.publish_delta(&Branch::main(), piece("d"));
        }
        let text = format!("message {round}");
        engine.emit(&Branch::main(), message(&text));
        engine.flush().await.expect("committed");
        expected.push(text);
        if round % 3 == 0 {
            let next = recorded.next().await.expect("readable").expect("an event");
            assert!(!next.event.is_delta(), "{next:?}");
            assert_eq!(texts([next.as_ref()]), [expected[round / 3].clone()]);
        }
    }
    // A delta does not wake it.
    while tokio::time::timeout(Duration::from_millis(20), recorded.next()).await.is_ok() {}
    engine.publish_delta(&Branch::main(), piece("d"));
    assert!(tokio::time::timeout(Duration::from_millis(20), recorded.next()).await.is_err());
    engine.finish(RunStatus::Completed).await.expect("finished");
    assert!(rest(&mut recorded).await.is_empty());
    assert_eq!(without_deltas(&rest(&mut all).await), expected);
}
