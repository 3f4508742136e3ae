//! GPU architectures by compute capability.

use std::fmt;
use std::str::FromStr;

macro_rules! archs {
    ($($name:ident = $number:literal, $cards:literal;)*) => {
        /// A GPU architecture that kernels can be built for.
        ///
        /// PTX for one architecture runs on every later one (the driver compiles it on first use); machine code
        /// (a cubin) runs on cards of the same major version with the same or a later minor one.
        ///
        /// ```
        /// use warpfold_ptx_builder::Arch;
        /// assert_eq!(Arch::Sm90.to_string(), "sm_90");
        /// assert_eq!("sm_86".parse::<Arch>().unwrap().number(), 86);
        /// assert!(Arch::Sm75 < Arch::Sm120);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Arch {
            $(#[doc = $cards] $name,)*
        }

        impl Arch {
            /// Every architecture, oldest first.
            pub const ALL: &'static [Arch] = &[$(Arch::$name),*];

            /// The compute capability as one number: 10 * major + minor, so 90 for `sm_90`.
            pub const fn number(self) -> u32 {
                match self { $(Arch::$name => $number,)* }
            }
        }
    };
}

archs! {
    Sm75 = 75, "Turing: T4, RTX 20. The oldest one that CUDA 13 assembles for.";
    Sm80 = 80, "Ampere: A100.";
    Sm86 = 86, "Ampere: A10, A40, RTX 30.";
    Sm87 = 87, "Ampere: Jetson Orin.";
    Sm89 = 89, "Ada: L4, L40, RTX 40.";
    Sm90 = 90, "Hopper: H100, H200.";
    Sm100 = 100, "Blackwell: B100, B200.";
    Sm103 = 103, "Blackwell: B300.";
    Sm110 = 110, "Blackwell: Jetson Thor.";
    Sm120 = 120, "Blackwell: RTX 50, RTX PRO.";
    Sm121 = 121, "Blackwell: GB10.";
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.number())
    }
}

/// The text names no architecture that this crate knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown GPU architecture `{0}`; known are sm_75, sm_80, sm_86, sm_87, sm_89, sm_90 and sm_100 to sm_121"
)]
pub struct UnknownArch(String);

impl FromStr for Arch {
    type Err = UnknownArch;

    /// Reads `sm_90` or plain `90`.
    fn from_str(text: &str) -> Result<Arch, UnknownArch> {
        let number = text.strip_prefix("sm_").unwrap_or(text).parse::<u32>().ok();
        let arch = Arch::ALL.iter().copied().find(|arch| Some(arch.number()) == number);
        arch.ok_or_else(|| UnknownArch(text.to_owned()))
    }
}
