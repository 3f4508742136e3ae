//! What ends the command early, and with which exit code.

use std::path::PathBuf;

use crate::input::InputError;

/// Everything that can go wrong. Each displays as one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line itself is wrong.
    #[error("{0}")]
    Usage(String),
    /// The file cannot be read as what it should be.
    #[error("{}: {source}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: InputError,
    },
    /// Two files do not go together.
    #[error("{}: holds {problem} as {} does", with.display(), file.display())]
    Mismatch {
        /// The first.
        file: PathBuf,
        /// The second.
        with: PathBuf,
        /// What the second holds that the first does not.
        problem: String,
    },
    /// A file's numbers are no offsets of segments, or not of the array's.
    #[error("{}: {source}", path.display())]
    Offsets {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        source: warpfold::Error,
    },
    /// A file's elements cannot be offsets.
    #[error("{}: holds {found}; offsets are integers along one axis", path.display())]
    NoOffsets {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: String,
    },
    /// A file's elements cannot be keys.
    #[error("{}: holds elements of type {found}; keys are integers, floats, bool, or text in a .csv file", path.display())]
    NoKeys {
        /// The file.
        path: PathBuf,
        /// Their type.
        found: &'static str,
    },
    /// A file's elements cannot be tags.
    #[error("{}: holds {found}; tags are integers", path.display())]
    NoTags {
        /// The file.
        path: PathBuf,
        /// What they are.
        found: &'static str,
    },
    /// A tag that there is not.
    #[error("{}: tag {index} is {tag}, not below --tags {tags} (--ignore-out-of-range leaves such values out)", path.display())]
    Tag {
        /// The file.
        path: PathBuf,
        /// Its place, from 0.
        index: u64,
        /// The tag.
        tag: i128,
        /// How many there are.
        tags: u64,
    },
    /// The file of --out could not be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Out {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no GPU to use, or no code for one.
    #[error("--backend cuda: {0} (--backend cpu needs no GPU)")]
    NoCuda(warpfold::Error),
    /// The backend failed.
    #[error("{0}")]
    Backend(#[from] warpfold::Error),
    /// The results could not be written.
    #[error("cannot write the results: {0}")]
    Output(std::io::Error),
}

impl Error {
    /// Has the backend no kernels for what was asked of it?
    pub fn is_no_kernel(&self) -> bool {
        use warpfold::Error::{NoKernel, NotCompiled};
        matches!(self, Error::Backend(NoKernel { .. } | NotCompiled { .. }))
    }

    /// 2 for a wrong command line, 1 for everything found later.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            Error::Input { .. } | Error::Mismatch { .. } => 1,
            Error::NoKeys { .. } | Error::NoTags { .. } | Error::Tag { .. } => 1,
            Error::Offsets { .. } | Error::NoOffsets { .. } | Error::Out { .. } => 1,
            Error::NoCuda(_) | Error::Backend(_) | Error::Output(_) => 1,
        }
    }
}
