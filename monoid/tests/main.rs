//! Operators through the public API, against plain left folds over exact types.

mod adapters;
mod any_order;
mod checked;
mod data;
mod derive;
mod exact;
mod extremes;
mod fused;
mod generic;
mod logsumexp;
mod math;
mod misuse;
mod moments;
mod norms;
mod number;
mod segment_sums;
mod sums;
mod support;
mod truth;
