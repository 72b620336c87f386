//! Which layers of the sandbox work on this machine. `trial` tries them.

#[cfg(target_os = "linux")]
mod trial;

#[cfg(target_os = "linux")]
pub use trial::probe;

/// Result of probing this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxProbe {
    /// The strongest sandbox that works.
    pub strength: SandboxStrength,
    /// Each layer, the outermost first.
    pub layers: Vec<SandboxLayer>,
}

/// The kinds of sandbox, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxStrength {
    /// Namespaces and a seccomp filter.
    Namespaces,
    /// Landlock and a stricter seccomp filter: weaker, but enough to run commands without asking.
    Landlock,
    /// No sandbox works.
    None,
}

/// One kernel mechanism, and whether it works here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxLayer {
    /// `namespaces`, `landlock` or `seccomp`.
    pub name: &'static str,
    /// Description of the layer for the user.
    pub does: &'static str,
    /// Why the layer does not work, and what can be done about it; `None` if it works.
    pub missing: Option<String>,
}

impl SandboxProbe {
    /// One word for events: `namespaces`, `landlock` or `none`.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match self.strength {
            SandboxStrength::Namespaces => "namespaces",
            SandboxStrength::Landlock => "landlock",
            SandboxStrength::None => "none",
        }
    }

    /// Why the strongest sandbox is not available, for the warning at the start of a run.
    #[must_use]
    pub fn missing_reason(&self) -> Option<String> {
        let missing: Vec<&str> = self.layers.iter().filter_map(|layer| layer.missing.as_deref()).collect();
        match self.strength {
            SandboxStrength::Namespaces => None,
            SandboxStrength::Landlock => missing.first().map(|why| (*why).to_owned()),
            // The last layer is missing because those before it are.
            SandboxStrength::None => Some(missing.iter().take(2).copied().collect::<Vec<_>>().join("; ")),
        }
    }

    /// The guarantees of the Landlock sandbox, if that is the one in use.
    #[must_use]
    pub fn landlock_guarantees(&self) -> Option<&'static str> {
        let landlock = self.layers.iter().find(|layer| layer.name == "landlock");
        landlock.filter(|_| self.strength == SandboxStrength::Landlock).map(|layer| layer.does)
    }
}
