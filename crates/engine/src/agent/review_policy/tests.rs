//! Decisions of review mode, as a table.

use fusee_tools::Access::{Read, Write};

use super::{ReviewPolicy, ReviewRuling};

#[test]
fn a_review_looks_freely_asks_before_it_acts_and_stops_at_its_cap() {
    let plain = ReviewPolicy::default();
    let strict = ReviewPolicy { require_approval: false, ..ReviewPolicy::default() };
    let listed = ReviewPolicy { allowed_tools: vec!["shell".into()], ..ReviewPolicy::default() };
    let table = [
        (&plain, "read_file", Read, 0, ReviewRuling::Allowed),
        (&plain, "edit_file", Write, 99, ReviewRuling::AskFirst),
        (&plain, "read_file", Read, 100, ReviewRuling::TooMany),
        (&strict, "edit_file", Write, 0, ReviewRuling::NotInReview),
        (&listed, "shell", Write, 0, ReviewRuling::Allowed),
        (&listed, "read_file", Read, 0, ReviewRuling::AskFirst),
    ];
    for (restrictions, name, category, calls, expected) in table {
        assert_eq!(restrictions.decide(name, category, calls), expected, "{name} after {calls} calls");
    }
}
