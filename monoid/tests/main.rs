//! Operators through the public API, against plain left folds over exact types.

mod adapters;
mod derive;
mod fused;
mod misuse;
mod support;
