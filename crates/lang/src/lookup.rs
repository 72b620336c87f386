//! Lookup in fixed tables: forms and library functions are looked up for every list of a workflow.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A lookup table with fixed keys, so a fast hash that is not collision-resistant is safe.
pub(crate) type LookupTable<T> = HashMap<&'static str, &'static T, BuildHasherDefault<Fnv>>;

/// FNV-1a: two operations per byte, which is fast for short names.
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
