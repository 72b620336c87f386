use robot_walk::Robot;

fn after(commands: &str) -> String {
    let mut robot = Robot::new(0, 0);
    robot.run(commands).unwrap();
    robot.place()
}

#[test]
fn walking() {
    assert_eq!(after(""), "0 0 N");
    assert_eq!(after("FFRFLB"), "1 1 N");
    assert_eq!(after("LB"), "1 0 W");
}

#[test]
fn repeating() {
    assert_eq!(after("3FR12F"), "12 3 E");
    assert_eq!(after("5R0F"), "0 0 E");
}

#[test]
fn walls() {
    let mut robot = Robot::new(0, 0);
    robot.wall(0, 2);
    robot.wall(-1, 1);
    robot.run("5FLF").unwrap();
    assert_eq!((robot.place(), robot.bumps()), ("0 1 W".to_string(), 5));
    robot.run("3B").unwrap();
    assert_eq!((robot.place(), robot.bumps()), ("3 1 W".to_string(), 5));
}

#[test]
fn undoing() {
    assert_eq!(after("FRU"), "0 1 N");
    assert_eq!(after("3F2U"), "0 1 N");
    assert_eq!(after("FU5U"), "0 0 N");
    let mut robot = Robot::new(0, 0);
    robot.wall(0, 1);
    robot.run("RLFU").unwrap();
    assert_eq!((robot.place(), robot.bumps()), ("0 0 N".to_string(), 1));
    robot.run("U").unwrap();
    assert_eq!(robot.place(), "0 0 E");
}

#[test]
fn faults() {
    let mut robot = Robot::new(0, 0);
    assert_eq!(robot.run("FFxF"), Err(2));
    assert_eq!(robot.place(), "0 2 N");
    assert_eq!(robot.run("F 2F"), Err(1));
    assert_eq!(robot.run("R12"), Err(1));
    assert_eq!(robot.place(), "0 3 E");
}
