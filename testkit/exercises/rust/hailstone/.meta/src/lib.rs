/// Returns the number of steps and the largest number on the way.
fn follow(start: u64) -> Option<(u64, u64)> {
    if start == 0 {
        return None;
    }
    let (mut number, mut count, mut top) = (start, 0, start);
    while number != 1 {
        number = if number % 2 == 0 { number / 2 } else { number.checked_mul(3)?.checked_add(1)? };
        count += 1;
        top = top.max(number);
    }
    Some((count, top))
}

/// Returns the number of steps until 1 is reached.
pub fn steps(start: u64) -> Option<u64> {
    follow(start).map(|(count, _)| count)
}

/// Returns the largest number on the way.
pub fn highest(start: u64) -> Option<u64> {
    follow(start).map(|(_, top)| top)
}
