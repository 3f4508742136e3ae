//! Scans that begin anew with each run of equal keys, or at flags.

use std::fmt;

use warpfold_monoid::{
    Monoid, Plain,
    keyed::{Equal, Equality, Heads, Nothing, RunEnds},
};

use super::Scanner;
use crate::{Error, Input, KeyReducer, SegmentPlan, segments::room};

/// Scans runs of neighbours that have the same key, each with the bits of being scanned alone. Cheap to clone, usable from any thread.
///
/// Made by [`Scanner::by_key`], [`Scanner::by_key_with`] and [`Scanner::by_heads`], of the scanner's form, direction and start value.
/// Keys are compared as [`KeyReducer`] does: only neighbours are.
#[derive(Clone)]
pub struct KeyScanner<K, Op: Monoid, E: Clone = Equal> {
    pub(super) scanner: Scanner<Op>,
    /// Finds where runs end.
    pub(super) runs: KeyReducer<K, RunEnds, E>,
}

impl<K, Op: Monoid, E: Clone> fmt::Debug for KeyScanner<K, Op, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyScanner<{}> of {:?}", std::any::type_name::<K>(), self.scanner)
    }
}

impl<Op: Monoid> Scanner<Op> {
    /// The same scan of each run of equal keys.
    ///
    /// # Errors
    ///
    /// On a GPU and in the simulator [`Error::NoKernel`] if no loaded kernels find runs of such keys; it has the line that exports
    /// them. Those of `i32` and `i64` serve integers, `bool` and `char`.
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().scanner(Sum::<i32>::new())?;
    /// assert_eq!(sum.by_key()?.scan(&[7_u8, 7, 3, 3, 3], &[1, 2, 3, 4, 5])?, [1, 3, 3, 7, 12]);
    /// assert_eq!(sum.exclusive().by_key()?.scan(&[7_u8, 7, 3, 3, 3], &[1, 2, 3, 4, 5])?, [0, 1, 0, 3, 7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn by_key<K: Plain + PartialEq>(&self) -> Result<KeyScanner<K, Op>, Error> {
        self.by_key_with(Equal)
    }

    /// The same with an [`Equality`] of one's own.
    ///
    /// # Errors
    ///
    /// As for [`by_key`](Scanner::by_key).
    ///
    /// ```
    /// use warpfold_host::{Engine, Equality};
    /// use warpfold_monoid::{Max, Plain};
    ///
    /// /// Less than 5 apart.
    /// #[derive(Clone, Copy, Plain)]
    /// struct Near;
    ///
    /// impl Equality<u64> for Near {
    ///     fn same(&self, earlier: u64, later: u64) -> bool { later - earlier < 5 }
    /// }
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let highest = Engine::cpu().scanner(Max::<i32>::new())?.by_key_with(Near)?;
    /// assert_eq!(highest.scan(&[1_u64, 4, 8, 20, 21], &[3, 9, 5, 1, 2])?, [3, 9, 9, 1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn by_key_with<K: Plain, E: Equality<K>>(&self, equality: E) -> Result<KeyScanner<K, Op, E>, Error> {
        Ok(KeyScanner { scanner: self.clone(), runs: self.engine.by_key_with(RunEnds, equality)? })
    }

    /// The same scan, which begins anew at each item whose flag is not zero.
    ///
    /// # Errors
    ///
    /// As for [`by_key`](Scanner::by_key).
    ///
    /// ```
    /// use warpfold_host::Engine;
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let sum = Engine::cpu().scanner(Sum::<i32>::new())?.by_heads()?;
    /// assert_eq!(sum.scan(&[0, 0, 1, 1, 0], &[1, 2, 3, 4, 5])?, [1, 3, 3, 4, 9]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn by_heads(&self) -> Result<KeyScanner<u8, Op, Heads>, Error> {
        self.by_key_with(Heads)
    }
}

impl<K: Plain, Op: Monoid, E: Equality<K>> KeyScanner<K, Op, E> {
    /// The scan of each run.
    pub fn scanner(&self) -> &Scanner<Op> {
        &self.scanner
    }

    /// Where runs are, as a plan for other work on as many items.
    ///
    /// # Errors
    ///
    /// As for [`KeyReducer::reduce`].
    ///
    /// ```
    /// use warpfold_host::{Engine, SegmentPlan};
    /// use warpfold_monoid::Sum;
    ///
    /// # fn main() -> Result<(), warpfold_host::Error> {
    /// let engine = Engine::cpu();
    /// let plan = engine.scanner(Sum::<f32>::new())?.by_key()?.plan(&[4, 4, 9])?;
    /// assert_eq!(plan, SegmentPlan::from_lengths(&[2, 1])?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn plan<I: Input<K> + ?Sized>(&self, keys: &I) -> Result<SegmentPlan, Error> {
        let positions = room::<Nothing>(keys.source()?.count())?;
        let ends = self.runs.reduce(keys, &positions)?.values;
        let mut offsets = room::<u64>(ends.len() as u64 + 1)?;
        offsets[1..].copy_from_slice(&ends);
        SegmentPlan::from_offsets(&offsets)
    }

    /// Scans each run of an array, and waits for the results: one for each item, with the bits of
    /// [`scan_segments`](Scanner::scan_segments).
    ///
    /// # Errors
    ///
    /// As there, and [`Error::ColumnLengths`] if there are not as many keys as items.
    pub fn scan<I, V>(&self, keys: &I, items: &V) -> Result<Vec<Op::Output>, Error>
    where
        I: Input<K> + ?Sized,
        V: Input<Op::Item> + ?Sized,
    {
        crate::keys::same_lengths(keys.source()?.count(), items.source()?.count())?;
        self.scanner.scan_segments(items, &self.plan(keys)?)
    }
}
