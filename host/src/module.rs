//! Compiled kernels as a build script embeds them, and which of their images suits a device.

use std::fmt;

use warpfold_gpu_kernels::export::Table;

/// A leaf crate's kernels: what it exports, and the modules compiled from it.
///
/// Given to [`Engine::load`](crate::Engine::load). The modules come from `warpfold-ptx-builder`; without any, only the
/// CPU can run the operators.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    /// From an operator's type to its entry points: what `kernels!` defines.
    pub table: &'static Table,
    /// The compiled modules, one an export.
    pub modules: &'static [Module],
}

/// The entry points of one export, compiled.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// The export's name.
    pub name: &'static str,
    /// Its entry points.
    pub entries: &'static [&'static str],
    /// The same code for several architectures.
    pub images: &'static [Image],
}

/// A module compiled for one architecture.
#[derive(Clone, Copy)]
pub struct Image {
    /// The architecture: ten times the major compute capability and the minor one, 90 for sm_90.
    pub arch: u32,
    /// What the bytes are.
    pub kind: ImageKind,
    /// PTX text (with or without a NUL at its end) or a cubin, compressed: raw deflate (RFC 1951).
    pub deflated: &'static [u8],
    /// Its bytes when inflated.
    pub len: usize,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({} bytes, {} compressed)", self.len, self.deflated.len())
    }
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ImageKind::Ptx => write!(f, "compute_{}", self.arch),
            ImageKind::Cubin => write!(f, "sm_{}", self.arch),
        }
    }
}

/// What an [`Image`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageKind {
    /// PTX, which the driver compiles on first use. Runs on its architecture and all later ones.
    Ptx,
    /// Machine code. Runs on its architecture, and on later ones of the same major version.
    Cubin,
}

impl Module {
    /// Do the kernels of that image wait for the grid ahead of them before they touch memory? Those compiled for sm_90 and
    /// later do; machine code that was assembled from the PTX of an older architecture does not.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) fn waits(&self, image: &Image) -> bool {
        let from = |ptx: &&Image| ptx.kind == ImageKind::Ptx && ptx.arch <= image.arch;
        let source = self.images.iter().filter(from).map(|ptx| ptx.arch).max();
        source.is_some_and(|arch| arch >= 90)
    }

    /// The image to load on a device of that compute capability (major, minor): machine code if any suits, else the
    /// newest PTX that does.
    ///
    /// ```
    /// use warpfold_host::module::{Image, ImageKind, Module};
    ///
    /// const IMAGES: &[Image] = &[
    ///     Image { arch: 75, kind: ImageKind::Ptx, deflated: b"", len: 0 },
    ///     Image { arch: 80, kind: ImageKind::Ptx, deflated: b"", len: 0 },
    ///     Image { arch: 80, kind: ImageKind::Cubin, deflated: b"", len: 0 },
    /// ];
    /// let module = Module { name: "sum", entries: &[], images: IMAGES };
    /// assert_eq!(module.image_for((8, 6)).unwrap().to_string(), "sm_80");
    /// assert_eq!(module.image_for((9, 0)).unwrap().to_string(), "compute_80");
    /// assert!(module.image_for((7, 0)).is_none());
    /// ```
    pub fn image_for(&self, compute_capability: (u32, u32)) -> Option<&'static Image> {
        let (major, minor) = compute_capability;
        let device = 10 * major + minor;
        self.images
            .iter()
            .filter(|image| match image.kind {
                ImageKind::Ptx => image.arch <= device,
                ImageKind::Cubin => image.arch / 10 == major && image.arch <= device,
            })
            .max_by_key(|image| (image.kind == ImageKind::Cubin, image.arch))
    }
}
