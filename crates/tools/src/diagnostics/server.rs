//! Which language server checks a file.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// A language whose server is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ServerKind {
    Rust,
    Python,
    Go,
    TypeScript,
}

impl ServerKind {
    /// The server for a file, by its extension.
    pub(super) fn from_path(path: &str) -> Option<Self> {
        match Path::new(path).extension()?.to_str()? {
            "rs" => Some(Self::Rust),
            "py" | "pyi" => Some(Self::Python),
            "go" => Some(Self::Go),
            "ts" | "tsx" | "mts" | "cts" | "js" | "jsx" | "mjs" | "cjs" => Some(Self::TypeScript),
            _ => None,
        }
    }

    /// The command that starts it, if it is installed in one of the directories of `path`.
    pub(super) fn command(self, path: Option<&OsStr>) -> Option<String> {
        let candidates: &[(&str, &str)] = match self {
            Self::Rust => &[("rust-analyzer", "")],
            Self::Python => &[("pyright-langserver", " --stdio"), ("basedpyright-langserver", " --stdio")],
            Self::Go => &[("gopls", "")],
            Self::TypeScript => &[("typescript-language-server", " --stdio")],
        };
        let is_program = |file: &Path| {
            file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        let installed = |name: &str| {
            std::env::split_paths(path?).map(|folder| folder.join(name)).find(|it| is_program(it))
        };
        candidates
            .iter()
            .find(|(name, _)| installed(name).is_some())
            .map(|(name, rest)| format!("exec {name}{rest}"))
    }

    /// Name of the language in the protocol.
    pub(super) fn language(self, path: &Path) -> &'static str {
        let extension = path.extension().and_then(OsStr::to_str);
        match (self, extension) {
            (Self::Rust, _) => "rust",
            (Self::Python, _) => "python",
            (Self::Go, _) => "go",
            (Self::TypeScript, Some("tsx")) => "typescriptreact",
            (Self::TypeScript, Some("jsx")) => "javascriptreact",
            (Self::TypeScript, Some("js" | "mjs" | "cjs")) => "javascript",
            (Self::TypeScript, _) => "typescript",
        }
    }
}
