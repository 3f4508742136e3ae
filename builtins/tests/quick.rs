use warpfold_gpu_kernels::device::ReduceParams;
use warpfold_monoid::{*, tree::*};
use warpfold_simt::sim::{self, Launch, Options};
fn run<Op: Monoid>(op: Op, items: &[Op::Item]) -> Op::Output where Op::Output: Default {
    let shape = Shape::new(items.len() as u64, size_of::<Op::Item>());
    let export = warpfold_builtins::TABLE.find::<Op>().unwrap();
    let mut out = [Op::Output::default()]; let mut partials = vec![op.identity(); shape.chunks.max(1) as usize]; let mut ticket = 0u32;
    let params = ReduceParams { input: items.as_ptr(), n: shape.n, output: out.as_mut_ptr(), partials: partials.as_mut_ptr(), ticket: &mut ticket, chunk: shape.chunk, chunks: shape.chunks as u32, groups: shape.groups, op };
    let (k, grid, block) = if shape.chunks <= 1 { ("reduce_one", 1, shape.groups.max(32)) } else if shape.groups == SHORT_GROUPS { ("reduce_short", shape.chunks as u32, 256) } else { ("reduce_long", shape.chunks as u32, 512) };
    let entry = export.entries.iter().find(|e| e.kernel == k).unwrap();
    let p = &raw const params as usize;
    sim::launch(&Launch::new(k, grid, block), &Options::default(), || unsafe { (entry.simulate)(p as *const u8) }).unwrap();
    assert_eq!(ticket, 0);
    out[0]
}
#[test] fn quick() {
    let x: Vec<f32> = (0..3_000_000u32).map(|i| (i.wrapping_mul(2654435761) >> 8) as f32 / 1e6 - 8.0).collect();
    let t = std::time::Instant::now();
    for n in (1..200).chain([255,256,257,511,512,513,1000,1023,1024,1025,2047,2048,2049,4095,4096,4097,8191,8192,8193,12288,12289,100_000,1<<20,(1<<20)+1, 1_500_001]) {
        for off in 0..4 { if n > 20000 && off > 1 { continue; }
            let s = &x[off..off + n];
            assert_eq!(run(Sum::<f32>::new(), s).to_bits(), tree::reduce(&Sum::<f32>::new(), s).to_bits(), "n {n} off {off}");
            if n < 20000 { assert_eq!(Some(run(Min::<f32>::new(), s)), tree::reduce(&Min::<f32>::new(), s), "n {n} off {off}"); }
        }
    }
    let y: Vec<f64> = x.iter().map(|&v| v as f64 * 1.1).collect();
    for n in (1..100).chain([4095,4096,4097,8192,20001]) { for off in 0..2 { let s = &y[off..off+n]; assert_eq!(run(Sum::<f64>::new(), s).to_bits(), tree::reduce(&Sum::<f64>::new(), s).to_bits(), "n {n} off {off}"); } }
    eprintln!("{:?}", t.elapsed());
}
