use clock_time::Time;

#[test]
fn text() {
    assert_eq!(Time::new(8, 5).to_string(), "08:05");
    assert_eq!(Time::new(23, 59).to_string(), "23:59");
}

#[test]
fn too_large_numbers_wrap_around() {
    assert_eq!(Time::new(25, 0).to_string(), "01:00");
    assert_eq!(Time::new(24, 0).to_string(), "00:00");
    assert_eq!(Time::new(1, 160).to_string(), "03:40");
    assert_eq!(Time::new(100, 6000).to_string(), "08:00");
}

#[test]
fn negative_numbers_wrap_around() {
    assert_eq!(Time::new(0, -1).to_string(), "23:59");
    assert_eq!(Time::new(-25, 0).to_string(), "23:00");
    assert_eq!(Time::new(1, -40).to_string(), "00:20");
    assert_eq!(Time::new(-12, -268).to_string(), "07:32");
}

#[test]
fn adding() {
    assert_eq!(Time::new(10, 0).add(65), Time::new(11, 5));
    assert_eq!(Time::new(23, 30).add(45), Time::new(0, 15));
    assert_eq!(Time::new(0, 10).add(-20), Time::new(23, 50));
    assert_eq!(Time::new(6, 0).add(1440 * 3), Time::new(6, 0));
}

#[test]
fn until() {
    assert_eq!(Time::new(8, 0).until(Time::new(9, 30)), 90);
    assert_eq!(Time::new(23, 0).until(Time::new(1, 0)), 120);
    assert_eq!(Time::new(5, 5).until(Time::new(5, 5)), 0);
    assert_eq!(Time::new(5, 5).until(Time::new(5, 4)), 1439);
}

#[test]
fn equal_times() {
    assert_eq!(Time::new(0, 0), Time::new(-24, 1440));
    assert_ne!(Time::new(0, 1), Time::new(1, 0));
}
