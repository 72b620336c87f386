//! The supervisor's report about its command, and its wire format.

use std::io;

use super::Ending;
use super::allowance::Exceeded;
use super::fault::{Fault, Step};
use super::guard::Undone;

/// The only message that a supervisor sends about its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The command could not be started; holds the errno.
    NotStarted(i32),
    /// The command was not started, because its sandbox could not be set up: the failed step and the errno.
    NotConfined(Step, i32),
    /// The command has ended, and so has everything it had started, except for what could not be killed.
    Ended {
        /// How the command ended.
        ending: Ending,
        /// Number of processes it had left running, which were killed.
        ended: u32,
        /// Number of processes that could not be killed.
        left: u32,
        /// Whether changes to protected paths were reverted.
        undone: Undone,
        /// The limit it exceeded, if it was killed for that.
        exceeded: Option<Exceeded>,
    },
}

impl Report {
    pub(super) const LENGTH: usize = 15;

    pub(super) fn not_started(error: &io::Error) -> Self {
        Self::NotStarted(error.raw_os_error().unwrap_or(0))
    }

    pub(super) fn not_confined(fault: &Fault) -> Self {
        Self::NotConfined(fault.step, fault.error.raw_os_error().unwrap_or(0))
    }

    pub(super) fn encode(self) -> [u8; Self::LENGTH] {
        let (mark, number, ended, left, undone, exceeded) = match self {
            Self::NotStarted(error) => (0, error, 0, 0, Undone::Nothing, None),
            Self::Ended { ending: Ending::Exited(code), ended, left, undone, exceeded } => {
                (1, code, ended, left, undone, exceeded)
            }
            Self::Ended { ending: Ending::Signalled(signal), ended, left, undone, exceeded } => {
                (2, signal, ended, left, undone, exceeded)
            }
            Self::NotConfined(step, error) => (3, error, step.number(), 0, Undone::Nothing, None),
        };
        let mut message = [mark; Self::LENGTH];
        message[1..5].copy_from_slice(&number.to_le_bytes());
        message[5..9].copy_from_slice(&ended.to_le_bytes());
        message[9..13].copy_from_slice(&left.to_le_bytes());
        message[13] = u8::from(undone == Undone::Something);
        message[14] = Exceeded::mark(exceeded);
        message
    }

    pub(super) fn decode(message: &[u8]) -> Option<Self> {
        let message: &[u8; Self::LENGTH] = message.try_into().ok()?;
        let four = |at: usize| [message[at], message[at + 1], message[at + 2], message[at + 3]];
        let (number, ended, left) =
            (i32::from_le_bytes(four(1)), u32::from_le_bytes(four(5)), u32::from_le_bytes(four(9)));
        let undone = if message[13] == 0 { Undone::Nothing } else { Undone::Something };
        let ending = match message[0] {
            0 => return Some(Self::NotStarted(number)),
            1 => Ending::Exited(number),
            2 => Ending::Signalled(number),
            3 => return Step::of_number(ended).map(|step| Self::NotConfined(step, number)),
            _ => return None,
        };
        let exceeded = Exceeded::of_mark(message[14]);
        Some(Self::Ended { ending, ended, left, undone, exceeded })
    }
}
