use std::fmt;

const DAY: i32 = 24 * 60;

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    minutes: i32,
}

impl Time {
    /// Creates a time; any numbers wrap around.
    pub fn new(hours: i32, minutes: i32) -> Self {
        Time { minutes: (hours * 60 + minutes).rem_euclid(DAY) }
    }

    /// Returns the time a number of minutes later.
    pub fn add(self, minutes: i32) -> Self {
        Time::new(0, self.minutes + minutes)
    }

    /// Returns the minutes until the next occurrence of another time.
    pub fn until(self, other: Time) -> i32 {
        (other.minutes - self.minutes).rem_euclid(DAY)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.minutes / 60, self.minutes % 60)
    }
}
