//! Files that tools run by convention: what they contain runs, outside of the sandbox, as soon as the user
//! builds, tests, commits, opens the editor or enters the directory. A task may change them, so its report
//! lists those it changed.

/// Patterns of paths. One that ends in `/` is a directory at any depth; one with another `/` is the end of a
/// path; any other is a file name, with at most one `*`.
const RUN_BY_CONVENTION: &[&str] = &[
    // Builds.
    "Makefile",
    "makefile",
    "GNUmakefile",
    "*.mk",
    "CMakeLists.txt",
    "*.cmake",
    "configure",
    "configure.ac",
    "autogen.sh",
    "meson.build",
    "SConstruct",
    "SConscript",
    "BUILD",
    "BUILD.bazel",
    "WORKSPACE",
    "MODULE.bazel",
    "*.bzl",
    ".bazelrc",
    "justfile",
    "Justfile",
    ".justfile",
    "Taskfile.y*ml",
    "Dockerfile*",
    "Containerfile*",
    "docker-compose*",
    "compose.y*ml",
    "Vagrantfile",
    "Procfile*",
    "flake.nix",
    "shell.nix",
    "default.nix",
    // Rust, JVM, .NET, Go, Swift, Elixir, Haskell.
    "build.rs",
    "Cargo.toml",
    ".cargo/config",
    ".cargo/config.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "build.gradle*",
    "settings.gradle*",
    "gradle.properties",
    "gradlew*",
    "gradle-wrapper.properties",
    "pom.xml",
    "mvnw*",
    ".mvn/",
    "build.xml",
    "build.sbt",
    "*.csproj",
    "*.fsproj",
    "*.vbproj",
    "*.props",
    "*.targets",
    "go.mod",
    "go.work",
    "Package.swift",
    "mix.exs",
    "rebar.config",
    "Setup.hs",
    // JavaScript.
    "package.json",
    ".npmrc",
    ".yarnrc*",
    ".pnpmfile.cjs",
    "Gruntfile.*",
    "gulpfile.*",
    "*.config.js",
    "*.config.cjs",
    "*.config.mjs",
    "*.config.ts",
    ".eslintrc*",
    ".babelrc*",
    // Python.
    "setup.py",
    "setup.cfg",
    "pyproject.toml",
    "conftest.py",
    "pytest.ini",
    "tox.ini",
    "noxfile.py",
    "tasks.py",
    "sitecustomize.py",
    "usercustomize.py",
    "*.pth",
    // Ruby, PHP.
    "Rakefile",
    "Gemfile",
    "*.gemspec",
    "Guardfile",
    "composer.json",
    // Shells and version managers, when the directory is entered.
    ".envrc",
    ".mise.toml",
    "mise.toml",
    ".tool-versions",
    ".autoenv*",
    // Editors and debuggers.
    ".vscode/",
    ".idea/",
    ".zed/",
    ".fleet/",
    ".devcontainer/",
    "*.code-workspace",
    ".vimrc",
    ".nvimrc",
    ".nvim.lua",
    ".exrc",
    ".dir-locals.el",
    ".gdbinit",
    ".lldbinit",
    // Hooks and version control.
    ".husky/",
    ".githooks/",
    ".pre-commit-config.yaml",
    "lefthook*",
    ".lintstagedrc*",
    ".gitattributes",
    ".gitmodules",
    ".hg/",
    // Continuous integration.
    ".github/workflows/",
    ".github/actions/",
    ".gitea/",
    ".forgejo/",
    ".gitlab-ci.y*ml",
    ".circleci/",
    ".buildkite/",
    ".woodpecker*",
    ".drone.y*ml",
    ".travis.yml",
    "azure-pipelines.y*ml",
    "appveyor.yml",
    "bitbucket-pipelines.yml",
    "Jenkinsfile*",
    // Agents read these as instructions, or run what they name.
    "AGENTS.md",
    "CLAUDE.md",
    ".claude/",
    ".cursor/",
    ".codex/",
    ".mcp.json",
];

/// Whether a tool runs this file of the workspace by convention.
pub(crate) fn is_run_by_convention(path: &str) -> bool {
    RUN_BY_CONVENTION.iter().any(|pattern| is_match(pattern, path))
}

fn is_match(pattern: &str, path: &str) -> bool {
    if pattern.ends_with('/') {
        return path.starts_with(pattern)
            || path.match_indices(pattern).any(|(at, _)| path[..at].ends_with('/'));
    }
    if pattern.contains('/') {
        return path.strip_suffix(pattern).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    match pattern.split_once('*') {
        None => name == pattern,
        Some((start, end)) => {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests;
