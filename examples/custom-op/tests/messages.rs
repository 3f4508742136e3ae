//! What someone reads: the chapter on operators of one's own, and the messages where a step of it was forgotten.

use custom_op::ops::{CountOver, TABLE};
use warpfold::{Engine, Error, Map, MapFn, Plain, Sum, module::Kernels};
use warpfold_gpu_kernels::export::Table;

/// Nobody exports a sum of these.
#[derive(Clone, Copy, Plain)]
struct Halved;

impl MapFn for Halved {
    type From = f32;
    type To = f32;

    fn map(&self, from: f32, _index: u64) -> f32 {
        from / 2.0
    }
}

#[test]
fn an_operator_without_a_kernel_names_the_line_that_adds_it() {
    let op = Map::new(Sum::<f32>::new(), Halved);
    let text = Engine::sim().reducer(op).unwrap_err().to_string();
    assert!(text.contains("add a line like `my_operator => Map<Sum<f32, f64>, Halved>,`"), "{text}");
    assert_eq!(Engine::cpu().reducer(op).unwrap().reduce(&[1.0, 2.0]).unwrap(), 1.5, "the CPU needs none");
}

#[test]
fn a_table_of_another_layout_is_refused() {
    // As if the kernels were left from before a field was added.
    let mut export = *TABLE.find::<CountOver>().unwrap();
    export.descriptor.operator[0] += 4;
    let table = Table { krate: "stale", exports: vec![export].leak() };
    let engine = Engine::sim();
    engine.load(Kernels { table: Box::leak(Box::new(table)), modules: &[] });
    let error = engine.reducer(CountOver { threshold: 0.0 }).unwrap_err();
    assert!(matches!(error, Error::LayoutMismatch { export: "count_over", .. }), "{error}");
    assert!(error.to_string().contains("rebuild host and kernels from the same sources"), "{error}");
}

#[test]
fn the_chapter_shows_the_files_as_they_are() {
    let chapter = include_str!("../../../docs/custom-operators.md");
    let without_header = |file: &'static str| file.split_once("\n\n").map_or("", |(_, rest)| rest);
    let attributes = include_str!("../kernels/src/lib.rs").split_once("#![no_std]").unwrap().1;
    let attributes = attributes.split_once("\nmod ").unwrap().0;
    assert!(chapter.contains(attributes), "kernels/src/lib.rs begins otherwise");
    assert!(chapter.contains(include_str!("../kernels/src/mean.rs")), "kernels/src/mean.rs differs");
    assert!(chapter.contains(without_header(include_str!("../build.rs"))), "build.rs differs");
}
