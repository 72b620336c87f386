//! Decisions of review mode, as a table.

use fusee_tools::Category::{Read, Write};

use super::{Restrictions, Ruling};

#[test]
fn a_review_looks_freely_asks_before_it_acts_and_stops_at_its_cap() {
    let plain = Restrictions::default();
    let strict = Restrictions { require_approval: false, ..Restrictions::default() };
    let listed = Restrictions { allowed_tools: vec!["shell".into()], ..Restrictions::default() };
    let table = [
        (&plain, "read_file", Read, 0, Ruling::Allowed),
        (&plain, "edit_file", Write, 99, Ruling::AskFirst),
        (&plain, "read_file", Read, 100, Ruling::TooMany),
        (&strict, "edit_file", Write, 0, Ruling::NotInReview),
        (&listed, "shell", Write, 0, Ruling::Allowed),
        (&listed, "read_file", Read, 0, Ruling::AskFirst),
    ];
    for (restrictions, name, category, calls, expected) in table {
        assert_eq!(restrictions.judge(name, category, calls), expected, "{name} after {calls} calls");
    }
}
