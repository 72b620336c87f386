//! The handler's reader: every read of a file's content by the runtime. It stays in the workspace, is bounded, and
//! never reads a device or a pipe. The memory system only knows metadata and asks this reader for the rest.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fusee_tools::Workspace;
use fusee_tools::workspace::{OpenedPath, WorkspacePath};

use crate::memory::{FileReader, MemorySystem};

/// Creates the memory system of a workspace, whose index is stored in `file` if one is given.
pub fn memory(workspace: &Arc<Workspace>, file: Option<PathBuf>) -> MemorySystem {
    let reader = Arc::new(WorkspaceReader(Arc::clone(workspace)));
    MemorySystem::new(workspace.root(), file, reader)
}

/// Reads files of a workspace for the index.
struct WorkspaceReader(Arc<Workspace>);

impl FileReader for WorkspaceReader {
    fn head(&self, path: &Path, most: u64) -> Option<Vec<u8>> {
        let path = self.0.locate(path.to_str()?).ok()?;
        read(&self.0, &path, most).ok()
    }
}

/// Reads at most the first `most` bytes of a regular file.
pub(crate) fn read(workspace: &Workspace, path: &WorkspacePath, most: u64) -> Result<Vec<u8>, String> {
    match workspace.open_to_read(path) {
        Ok(OpenedPath::File { file, size }) => {
            let mut bytes = Vec::with_capacity(usize::try_from(size.min(most)).unwrap_or_default());
            file.take(most).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
            Ok(bytes)
        }
        Ok(_) => Err("not a regular file".to_owned()),
        Err(problem) => Err(problem.to_string()),
    }
}
