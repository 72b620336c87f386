//! The supervisor's report about its command, and its wire format.

use std::io;

use crate::sandbox::CommandEnd;
use crate::sandbox::error::{SandboxError, SetupStep};
use crate::sandbox::limits::ExceededLimit;
use crate::sandbox::protected_paths::report::ProtectionReport;

/// The only message that a supervisor sends about its command.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        killed_leftovers: u32,
        /// Number of processes that could not be killed.
        unkillable: u32,
        /// What the command had done to protected paths.
        protection: ProtectionReport,
        /// The limit it exceeded, if it was killed for that.
        exceeded: Option<ExceededLimit>,
    },
}

impl ExitReport {
    /// Length of the fixed part of a message.
    const HEADER: usize = 14;
    /// Maximum length of a message.
    pub(crate) const MAX_LENGTH: usize = Self::HEADER + ProtectionReport::MAX_ENCODED;

    pub(crate) fn not_started(error: &io::Error) -> Self {
        Self::NotStarted(error.raw_os_error().unwrap_or(0))
    }

    pub(crate) fn not_confined(fault: &SandboxError) -> Self {
        Self::NotConfined(fault.step, fault.error.raw_os_error().unwrap_or(0))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let (mark, number, killed_leftovers, unkillable, exceeded) = match self {
            Self::NotStarted(error) => (0, *error, 0, 0, None),
            Self::NotConfined(step, error) => (3, *error, step.number(), 0, None),
            Self::Ended { ending, killed_leftovers, unkillable, exceeded, .. } => match ending {
                CommandEnd::Exited(code) => (1, *code, *killed_leftovers, *unkillable, *exceeded),
                CommandEnd::Signalled(signal) => (2, *signal, *killed_leftovers, *unkillable, *exceeded),
            },
        };
        let mut message = vec![mark];
        message.extend(number.to_le_bytes());
        message.extend(killed_leftovers.to_le_bytes());
        message.extend(unkillable.to_le_bytes());
        message.push(ExceededLimit::mark(exceeded));
        if let Self::Ended { protection, .. } = self {
            protection.encode(&mut message);
        }
        message
    }

    pub(crate) fn decode(message: &[u8]) -> Option<Self> {
        let (header, rest) = message.split_first_chunk::<{ Self::HEADER }>()?;
        let four = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
        let (number, killed_leftovers, unkillable) =
            (i32::from_le_bytes(four(1)), u32::from_le_bytes(four(5)), u32::from_le_bytes(four(9)));
        let ending = match header[0] {
            0 => return Some(Self::NotStarted(number)),
            1 => CommandEnd::Exited(number),
            2 => CommandEnd::Signalled(number),
            3 => return SetupStep::from_number(killed_leftovers).map(|step| Self::NotConfined(step, number)),
            _ => return None,
        };
        let exceeded = ExceededLimit::from_code(header[13]);
        Some(Self::Ended {
            ending,
            killed_leftovers,
            unkillable,
            protection: ProtectionReport::decode(rest),
            exceeded,
        })
    }
}
