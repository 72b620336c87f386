//! Which policy applies at which position.

use super::*;

fn policy(max_turns: u32) -> RunPolicy {
    let limits = Limits { max_turns, ..Limits::default() };
    RunPolicy { limits, approve: ApprovalMode::Auto, commands_preapproved: true }
}

fn change(main: u64, max_turns: u32) -> PolicyChange {
    PolicyChange { after: BTreeMap::from([(Branch::main(), main)]), policy: policy(max_turns) }
}

#[test]
fn each_amendment_holds_from_its_step_to_the_next() {
    let policy_changes = [change(4, 10), change(9, 20)];
    let turns = |n| at(policy(1), &policy_changes, &Branch::main(), n).limits.max_turns;
    assert_eq!([0, 3, 4, 8, 9, 100].map(turns), [1, 1, 10, 10, 20, 20]);
}

#[test]
fn a_branch_that_began_later_has_the_new_terms_from_its_first_step() {
    let child = Branch::main().child(1);
    assert_eq!(at(policy(1), &[change(4, 10)], &child, 0).limits.max_turns, 10);
}
