//! `warpfold info`.

use crate::error::Error;

/// The backends, devices and built-in operators, as text or as one JSON object.
pub fn report(json: bool) -> Result<String, Error> {
    let _ = json;
    Ok(String::new())
}
