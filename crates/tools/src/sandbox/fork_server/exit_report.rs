//! The supervisor's report about its command, and its wire format.

use std::io;

use crate::sandbox::CommandEnd;
use crate::sandbox::error::{SandboxError, SetupStep};
use crate::sandbox::limits::ExceededLimit;
use crate::sandbox::protected_paths::Undone;

/// The only message that a supervisor sends about its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitReport {
    /// The command could not be started; holds the errno.
    NotStarted(i32),
    /// The command was not started, because its sandbox could not be set up: the failed step and the errno.
    NotConfined(SetupStep, i32),
    /// The command has ended, and so has everything it had started, except for what could not be killed.
    Ended {
        /// How the command ended.
        ending: CommandEnd,
        /// Number of processes it had left running, which were killed.
        ended: u32,
        /// Number of processes that could not be killed.
        left: u32,
        /// Whether changes to protected paths were reverted.
        undone: Undone,
        /// The limit it exceeded, if it was killed for that.
        exceeded: Option<ExceededLimit>,
    },
}

impl ExitReport {
    pub(crate) const LENGTH: usize = 15;

    pub(crate) fn not_started(error: &io::Error) -> Self {
        Self::NotStarted(error.raw_os_error().unwrap_or(0))
    }

    pub(crate) fn not_confined(fault: &SandboxError) -> Self {
        Self::NotConfined(fault.step, fault.error.raw_os_error().unwrap_or(0))
    }

    pub(crate) fn encode(self) -> [u8; Self::LENGTH] {
        let (mark, number, ended, left, undone, exceeded) = match self {
            Self::NotStarted(error) => (0, error, 0, 0, Undone::Nothing, None),
            Self::Ended { ending: CommandEnd::Exited(code), ended, left, undone, exceeded } => {
                (1, code, ended, left, undone, exceeded)
            }
            Self::Ended { ending: CommandEnd::Signalled(signal), ended, left, undone, exceeded } => {
                (2, signal, ended, left, undone, exceeded)
            }
            Self::NotConfined(step, error) => (3, error, step.number(), 0, Undone::Nothing, None),
        };
        let mut message = [mark; Self::LENGTH];
        message[1..5].copy_from_slice(&number.to_le_bytes());
        message[5..9].copy_from_slice(&ended.to_le_bytes());
        message[9..13].copy_from_slice(&left.to_le_bytes());
        message[13] = u8::from(undone == Undone::Something);
        message[14] = ExceededLimit::mark(exceeded);
        message
    }

    pub(crate) fn decode(message: &[u8]) -> Option<Self> {
        let message: &[u8; Self::LENGTH] = message.try_into().ok()?;
        let four = |at: usize| [message[at], message[at + 1], message[at + 2], message[at + 3]];
        let (number, ended, left) =
            (i32::from_le_bytes(four(1)), u32::from_le_bytes(four(5)), u32::from_le_bytes(four(9)));
        let undone = if message[13] == 0 { Undone::Nothing } else { Undone::Something };
        let ending = match message[0] {
            0 => return Some(Self::NotStarted(number)),
            1 => CommandEnd::Exited(number),
            2 => CommandEnd::Signalled(number),
            3 => return SetupStep::of_number(ended).map(|step| Self::NotConfined(step, number)),
            _ => return None,
        };
        let exceeded = ExceededLimit::of_mark(message[14]);
        Some(Self::Ended { ending, ended, left, undone, exceeded })
    }
}
