//! Which vector instructions the machine has, found at run time.

use std::sync::OnceLock;

/// A set of instructions that the walks are compiled for. All give the same bits: compilation for a wider vector
/// neither reorders nor contracts floating-point arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// What the target has at least: SSE2 on x86-64, NEON on aarch64.
    Base,
    /// x86-64-v3: AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    V3,
    /// x86-64-v4: AVX-512.
    #[cfg(target_arch = "x86_64")]
    V4,
}

impl Level {
    /// The best that this machine runs; looked up once.
    #[inline]
    pub(super) fn best() -> Level {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(Level::find)
    }

    #[cold]
    fn find() -> Level {
        #[cfg(target_arch = "x86_64")]
        for level in [Level::V4, Level::V3] {
            if level.runs_here() {
                return level;
            }
        }
        Level::Base
    }

    /// Has this machine what it takes?
    fn runs_here(self) -> bool {
        match self {
            Level::Base => true,
            #[cfg(target_arch = "x86_64")]
            Level::V3 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("lzcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Level::V4 => {
                Level::V3.runs_here()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
        }
    }

    /// Every level that this machine runs.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Level> {
        let levels = [
            Level::Base,
            #[cfg(target_arch = "x86_64")]
            Level::V3,
            #[cfg(target_arch = "x86_64")]
            Level::V4,
        ];
        levels.into_iter().filter(|level| level.runs_here()).collect()
    }
}
