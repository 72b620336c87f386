//! Maximum allocations per request up to turn 500, for `cargo xtask bench`. Prints one figure per line: name,
//! tab, number.
#![expect(clippy::print_stdout, reason = "prints its measurements")]

#[path = "../tests/request_cost/measure.rs"]
mod measure;

use fusee_model::Wire;

fn main() {
    for (name, wire) in [("chat", Wire::Chat), ("responses", Wire::Responses), ("anthropic", Wire::Anthropic)]
    {
        let costs = measure::requests(wire, 437..501);
        let most = |of: fn(&measure::Cost) -> f64| costs.iter().map(of).fold(0.0, f64::max);
        println!("{name}, allocations\t{}", most(|cost| cost.allocations as f64));
        println!(
            "{name}, kilobytes beyond its own\t{}",
            most(|cost| (cost.bytes as f64 - cost.own as f64) / 1024.0)
        );
        println!("{name}, share of the body\t{}", most(|cost| cost.bytes as f64 / cost.body as f64));
    }
}
