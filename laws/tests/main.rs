//! The checker itself, and the operators of warpfold under it.

mod checker;
mod operators;
