//! Engines, reducers and plans of warpfold: the host side.

