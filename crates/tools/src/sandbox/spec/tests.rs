//! Messages say the same on both sides.

use std::ffi::OsStr;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn a_spec_survives_the_way(command in "[^\0]{0,40}", variables in proptest::collection::vec(("[A-Z_]{1,8}", "[^\0]{0,20}"), 0..5)) {
        let pairs = variables.iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
        let message = encode(Sandbox::Off, OsStr::new(&command), pairs).unwrap();
        let spec = decode(&message).unwrap();
        prop_assert_eq!(spec.command.to_str().unwrap(), command);
        let environment: Vec<String> = spec.environment.iter().map(|pair| pair.to_str().unwrap().to_owned()).collect();
        prop_assert_eq!(environment, variables.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>());
    }

    #[test]
    fn no_message_makes_decoding_panic(message in any::<Vec<u8>>()) {
        let _ = (decode(&message), Report::decode(&message));
    }

    #[test]
    fn a_report_survives_the_way(code in any::<i32>(), ended in any::<u32>(), left in any::<u32>()) {
        for report in [
            Report::NotStarted(code),
            Report::Ended { ending: Ending::Exited(code), ended, left },
            Report::Ended { ending: Ending::Signalled(code), ended, left },
        ] {
            prop_assert_eq!(Report::decode(&report.encode()), Some(report));
        }
    }
}

#[test]
fn what_cannot_be_sent_is_refused() {
    assert_eq!(encode(Sandbox::Off, OsStr::new("a\0b"), [].into_iter()), Err(SpecError::Nul));
    assert_eq!(encode(Sandbox::Off, OsStr::new(&"x".repeat(MOST)), [].into_iter()), Err(SpecError::TooLong));
}
