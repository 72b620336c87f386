use seat_plan::{Plan, Refused};

#[test]
fn seats_are_given_in_order() {
    let mut plan = Plan::new(3);
    assert_eq!(plan.book("Ann"), Ok(1));
    assert_eq!(plan.book("Bob"), Ok(2));
    assert_eq!(plan.free(), 1);
    assert_eq!(plan.list(), [(1, "Ann".to_string()), (2, "Bob".to_string())]);
}

#[test]
fn a_full_plan() {
    let mut plan = Plan::new(1);
    assert_eq!(plan.book("Ann"), Ok(1));
    assert_eq!(plan.book("Bob"), Err(Refused::Full));
    assert_eq!(plan.book("Ann"), Err(Refused::AlreadyBooked));
    assert_eq!(Plan::new(0).book("Ann"), Err(Refused::Full));
}

#[test]
fn one_seat_for_each_name() {
    let mut plan = Plan::new(3);
    assert_eq!(plan.book("Ann"), Ok(1));
    assert_eq!(plan.book("Ann"), Err(Refused::AlreadyBooked));
    assert_eq!(plan.free(), 2);
}

#[test]
fn cancelled_seats_are_given_again() {
    let mut plan = Plan::new(3);
    for name in ["Ann", "Bob", "Cid"] {
        plan.book(name).unwrap();
    }
    assert_eq!(plan.cancel("Bob"), Ok(2));
    assert_eq!(plan.cancel("Ann"), Ok(1));
    assert_eq!(plan.free(), 2);
    assert_eq!(plan.book("Dan"), Ok(1));
    assert_eq!(plan.book("Bob"), Ok(2));
    assert_eq!(plan.list(), [(1, "Dan".to_string()), (2, "Bob".to_string()), (3, "Cid".to_string())]);
}

#[test]
fn unknown_names() {
    let mut plan = Plan::new(2);
    assert_eq!(plan.cancel("Ann"), Err(Refused::NotBooked));
    assert_eq!(plan.free(), 2);
}
