/// Counts values in intervals of equal width.
pub fn histogram(values: &[f64], low: f64, high: f64, buckets: usize) -> Option<Vec<usize>> {
    let mut counts = vec![0; buckets];
    let width = (high - low) / buckets as f64;
    for value in values {
        let index = ((value - low) / width) as usize;
        counts[index] += 1;
    }
    Some(counts)
}
