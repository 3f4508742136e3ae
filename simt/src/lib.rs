//! Threads, warps and blocks of a GPU kernel: PTX on the device, a simulator on the host.
#![no_std]
