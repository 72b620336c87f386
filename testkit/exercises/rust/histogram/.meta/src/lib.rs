/// Counts values in intervals of equal width.
pub fn histogram(values: &[f64], low: f64, high: f64, buckets: usize) -> Option<Vec<usize>> {
    if buckets == 0 || low >= high {
        return None;
    }
    let mut counts = vec![0; buckets];
    let width = (high - low) / buckets as f64;
    for value in values.iter().filter(|value| **value >= low && **value <= high) {
        let index = ((value - low) / width) as usize;
        counts[index.min(buckets - 1)] += 1;
    }
    Some(counts)
}
