//! Procedural macros of warpfold-simt.
