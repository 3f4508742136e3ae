//! Reads what test runs print.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;

/// How many tests ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Ran and held.
    pub passed: u64,
    /// Ran and did not.
    pub failed: u64,
    /// Did not run: ignored, or skipped for want of a GPU.
    pub skipped: u64,
}

impl Totals {
    /// Adds up the closing lines (`test result: ...`) of every test binary in `output`.
    ///
    /// A test that needs a GPU and finds none writes a line that begins with `skipped: ` and returns, which the
    /// runner counts as passed; here it counts as skipped.
    pub fn read(output: &str) -> Totals {
        let mut totals: Totals = output.lines().filter_map(closing_line).sum();
        let skips = output.lines().filter(|line| line.starts_with(SKIP)).count() as u64;
        let skips = skips.min(totals.passed);
        totals.passed -= skips;
        totals.skipped += skips;
        totals
    }
}

/// How the line of a test begins that skips itself.
pub const SKIP: &str = "skipped: ";

/// Whether the line is the closing line of a test binary.
pub fn is_closing(line: &str) -> bool {
    closing_line(line).is_some()
}

fn closing_line(line: &str) -> Option<Totals> {
    let rest = line.strip_prefix("test result: ")?;
    let counts = rest.split_once(". ")?.1;
    let count = |unit: &str| {
        let part = counts.split("; ").find_map(|part| part.strip_suffix(unit))?;
        part.trim().parse::<u64>().ok()
    };
    Some(Totals { passed: count(" passed")?, failed: count(" failed")?, skipped: count(" ignored")? })
}

impl Add for Totals {
    type Output = Totals;

    fn add(self, other: Totals) -> Totals {
        Totals {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl Sum for Totals {
    fn sum<I: Iterator<Item = Totals>>(totals: I) -> Totals {
        totals.fold(Totals::default(), Totals::add)
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binaries_and_doc_tests_add_up() {
        let output = "running 3 tests\ntest a ... ok\n\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s\n\n\
            \x20  Doc-tests warpfold\n\
            test result: FAILED. 10 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.25s\n\
            all doctests ran in 2.00s; merged doctests compilation took 1.50s\n";
        assert_eq!(Totals::read(output), Totals { passed: 13, failed: 4, skipped: 1 });
    }

    #[test]
    fn tests_without_their_gpu_are_skipped_and_not_passed() {
        let output = "skipped: reduce_bits::cuda: no CUDA device\nskipped: other: no CUDA device\n\
            a note that something was skipped: not at the start of its line\n\
            test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        let totals = Totals::read(output);
        assert_eq!(totals, Totals { passed: 5, failed: 0, skipped: 2 });
        assert_eq!(totals.to_string(), "5 passed, 0 failed, 2 skipped");
    }

    #[test]
    fn other_lines_do_not_count() {
        assert!(!is_closing("test result: ok"));
        assert!(!is_closing("test result: ok. many passed; 0 failed; 0 ignored"));
        assert_eq!(Totals::read("error: could not compile\n"), Totals::default());
    }
}
