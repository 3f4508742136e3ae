//! The reduction algorithms of warpfold as GPU kernels.
#![no_std]
