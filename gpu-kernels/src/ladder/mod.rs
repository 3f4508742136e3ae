//! Kernels of the papers, as their texts have them: rungs of the ladder that leads to what the library does.
//!
//! The library never uses them. They are here to be read beside [`scan`](crate::scan) and the others, to be tested at every
//! size, and to be timed (`ladder/`, a package of programs whose crate of kernels exports them for devices), so that each
//! step's worth can be seen. Where a printed listing is wrong, the kernel is right and says where.

pub mod future;
pub mod harris;
pub mod keyed;
pub mod moderngpu;
pub mod one_array;
pub mod ordered;
pub mod pass;
pub mod patel;
pub mod scan;
pub mod thesis;
pub mod timcheck;
pub mod transpose;
