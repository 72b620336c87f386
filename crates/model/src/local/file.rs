//! Checks of a model file before it is loaded: whether it exists and is a GGUF file.

use std::io::Read as _;
use std::path::Path;

/// First bytes of every GGUF file.
const MAGIC: &[u8] = b"GGUF";

/// Returns the size of the file in bytes, or an error message if it is obviously not usable.
pub(super) fn check(path: &Path) -> Result<u64, String> {
    let wrong = |what: &str| format!("cannot read the model {}: {what}", path.display());
    let mut file = std::fs::File::open(path).map_err(|error| wrong(&error.to_string()))?;
    let metadata = file.metadata().map_err(|error| wrong(&error.to_string()))?;
    if metadata.is_dir() {
        return Err(wrong("it is a directory; specify the GGUF file in it"));
    }
    let mut beginning = [0; 4];
    if file.read_exact(&mut beginning).is_err() || beginning != MAGIC {
        return Err(wrong("it is not a GGUF file, the format of llama.cpp's models"));
    }
    Ok(metadata.len())
}
