/// Returns the number of steps until 1 is reached.
pub fn steps(start: u64) -> Option<u64> {
    let mut number = start as u32;
    let mut count = 1;
    while number > 1 {
        if number % 2 == 0 {
            number /= 2;
        } else {
            number = number * 3 + 1;
        }
        count += 1;
    }
    Some(count)
}

/// Returns the largest number on the way.
pub fn highest(start: u64) -> Option<u64> {
    Some(start)
}
