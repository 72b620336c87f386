//! Text that is piped into a command which does not read its request from stdin.

use std::io::{self, Read as _};
use std::os::fd::AsFd as _;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat, tell};

use crate::process::environment::Environment;
use crate::process::error::CliError;
use crate::process::stdio;

/// Maximum number of bytes that are used; the rest is left out with a warning.
const MAX_BYTES: usize = 256 << 10;

/// How long a pipe may stay empty before it counts as idle: long enough for the other end of a pipeline that was
/// started together with us.
const IDLE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The text on stdin, if it is a file or a pipe with data. A terminal and an idle pipe are not waited for.
pub(crate) fn read(environment: &Environment) -> Result<Option<String>, CliError> {
    if environment.terminals().stdin || !has_data() {
        return Ok(None);
    }
    if is_shared_file() {
        stdio::error(
            "note: ignoring stdin: another program, such as a shell loop, is reading the same file; `</dev/null` \
             avoids this note\n",
        );
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let mut stdin = io::stdin().lock();
    let failed = |error: io::Error| CliError::usage(format!("cannot read stdin: {error}"));
    stdin.by_ref().take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    let is_cut = bytes.len() > MAX_BYTES;
    bytes.truncate(MAX_BYTES);
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // The limit may fall into a character.
        Err(error) if is_cut && error.utf8_error().error_len().is_none() => {
            String::from_utf8_lossy(error.as_bytes()).trim_end_matches('\u{fffd}').to_owned()
        }
        Err(_) => {
            stdio::error("warning: stdin is ignored because it is not text\n");
            return Ok(None);
        }
    };
    if is_cut {
        stdio::error(&format!("warning: only the first {} kB of stdin are used\n", MAX_BYTES >> 10));
    }
    let note = if is_cut { "\n[the rest is left out]" } else { "" };
    let text = text.trim_end();
    Ok((!text.is_empty()).then(|| format!("Standard input:\n\n{text}{note}")))
}

/// Whether stdin is a file that is being read by someone else, as in `while read -r line; do fusee run …; done < list`:
/// to read the rest would take it away from the loop. In a pipe this cannot be seen.
fn is_shared_file() -> bool {
    let stdin = io::stdin();
    let is_file = fstat(stdin.as_fd())
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile);
    is_file && tell(stdin.as_fd()).is_ok_and(|position| position > 0)
}

fn has_data() -> bool {
    let stdin = io::stdin();
    let kind = fstat(stdin.as_fd()).map(|found| FileType::from_raw_mode(found.st_mode));
    match kind {
        Ok(FileType::RegularFile) => true,
        Ok(FileType::Fifo | FileType::Socket) => {
            let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
            poll(&mut waiting, Some(&IDLE)).is_ok_and(|ready| ready > 0)
                && waiting[0].revents().contains(PollFlags::IN)
        }
        _ => false,
    }
}
