//! Finds the toolchains of a machine: trees outside the system directories that programs need to run.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{CommandEnvironment, SYSTEM, exists, is_plain};

/// Variables that name the root of a toolchain.
const ROOTS: [&str; 17] = [
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOROOT",
    "GOMODCACHE",
    "JAVA_HOME",
    "ANDROID_HOME",
    "NVM_DIR",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "PYENV_ROOT",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "GEM_HOME",
    "RBENV_ROOT",
    "SSL_CERT_DIR",
];

/// Variables that name several paths, separated by colons, or a single file.
const PLACES: [&str; 7] = [
    "PYTHONPATH",
    "NODE_PATH",
    "GEM_PATH",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
];

/// Usual locations of toolchains in a home directory.
const IN_HOME: [&str; 39] = [
    ".cargo",
    ".rustup",
    ".pyenv",
    ".nvm",
    ".rbenv",
    ".asdf",
    ".volta",
    ".fnm",
    ".deno",
    ".bun",
    ".sdkman",
    ".ghcup",
    ".cabal",
    ".stack/programs",
    ".juliaup",
    ".julia",
    ".dotnet",
    ".opam",
    ".elan",
    ".swiftly",
    ".nix-profile",
    ".m2/repository",
    ".gem/ruby",
    "go/bin",
    "go/pkg/mod",
    "miniconda3",
    "anaconda3",
    "miniforge3",
    "mambaforge",
    ".local/bin",
    ".local/lib",
    ".local/share/uv",
    ".local/share/mise",
    ".local/share/pnpm",
    ".local/share/pipx",
    ".local/share/fnm",
    ".local/share/virtualenvs",
    ".cache/pypoetry/virtualenvs",
    ".cache/ms-playwright",
];

/// Maximum number of entries examined in a directory on the search path. A user's own one has fewer.
const MAX_LINKS: usize = 512;

/// The trees that toolchains need. Those in the workspace are part of it already.
pub(super) fn roots(
    environment: &CommandEnvironment,
    home: Option<&Path>,
    workspace: &Path,
) -> BTreeSet<PathBuf> {
    let mut roots = BTreeSet::new();
    let mut add = |path: PathBuf| {
        let inside = path.starts_with(workspace) && !home.is_some_and(|home| home.starts_with(workspace));
        if is_plain(&path)
            && !is_broad(&path, home, workspace)
            && !inside
            && !is_system(&path)
            && exists(&path)
        {
            roots.insert(path);
        }
    };
    for name in ROOTS {
        environment.value(name).map(PathBuf::from).into_iter().for_each(&mut add);
    }
    for place in PLACES.iter().flat_map(|name| places(environment, name)) {
        add(place);
    }
    for path in places(environment, "GOPATH") {
        add(path.join("bin"));
        add(path.join("pkg/mod"));
    }
    for name in home.map(|home| IN_HOME.map(|name| home.join(name))).into_iter().flatten() {
        add(name);
    }
    for directory in places(environment, "PATH") {
        if is_system(&directory) {
            continue;
        }
        for target in link_targets(&directory) {
            add(tree_of(&target, home, workspace));
        }
        add(tree_of_directory(&directory, home, workspace));
    }
    roots
}

fn places(environment: &CommandEnvironment, name: &str) -> Vec<PathBuf> {
    let value = environment.value(name).unwrap_or_default();
    std::env::split_paths(value).filter(|path| is_plain(path)).collect()
}

/// Whether a path is too broad to be made readable: a home directory, a directory that many programs share,
/// or a parent of one of these or of the workspace.
fn is_broad(path: &Path, home: Option<&Path>, workspace: &Path) -> bool {
    let around = |inner: &Path| inner.starts_with(path);
    let shared = |home: &Path| {
        [".local", ".local/share", ".config", ".cache"].iter().any(|name| home.join(name) == path)
    };
    around(workspace)
        || home.is_some_and(|home| around(home) || shared(home))
        || ["/home", "/root", "/tmp", "/var", "/run", "/proc", "/sys", "/dev"]
            .iter()
            .any(|top| Path::new(top) == path)
}

fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}

/// The tree that a directory of programs belongs to: its parent, if it has a name such as `bin`.
fn tree_of_directory(directory: &Path, home: Option<&Path>, workspace: &Path) -> PathBuf {
    let is_part = ["bin", "sbin", "shims"].iter().any(|name| directory.file_name() == Some(OsStr::new(name)));
    match directory.parent() {
        Some(parent) if is_part && !is_broad(parent, home, workspace) => parent.to_owned(),
        _ => directory.to_owned(),
    }
}

/// The tree that a program belongs to.
fn tree_of(program: &Path, home: Option<&Path>, workspace: &Path) -> PathBuf {
    program.parent().map_or_else(|| program.to_owned(), |parent| tree_of_directory(parent, home, workspace))
}

/// Targets of the symbolic links in a directory of programs that are outside of it; many installers add
/// programs as links.
fn link_targets(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries
        .take(MAX_LINKS)
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
        .filter_map(|entry| entry.path().canonicalize().ok())
        .filter(|target| !target.starts_with(directory))
        .collect()
}
