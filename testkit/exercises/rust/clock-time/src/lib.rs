use std::fmt;

/// A time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    hours: i32,
    minutes: i32,
}

impl Time {
    /// Creates a time; any numbers wrap around.
    pub fn new(hours: i32, minutes: i32) -> Self {
        Time { hours: hours % 24, minutes: minutes % 60 }
    }

    /// Returns the time a number of minutes later.
    pub fn add(self, minutes: i32) -> Self {
        Time::new(self.hours, self.minutes + minutes)
    }

    /// Returns the minutes until the next occurrence of another time.
    pub fn until(self, other: Time) -> i32 {
        (other.hours - self.hours) * 60 + other.minutes - self.minutes
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}", self.hours, self.minutes)
    }
}
