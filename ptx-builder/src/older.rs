//! PTX for an older architecture, made from the text for a newer one.
//!
//! Where the newer has what the older lacks only as hints, or as a faster way to do what others do too, compiling the crate
//! once more gives the same text but for those. What each becomes:
//!
//! | instruction | from | becomes |
//! | --- | --- | --- |
//! | `griddepcontrol.wait`, `.launch_dependents` | sm_90 | nothing: before sm_90 grids follow each other whole |
//! | `cp.async.cg.shared.global` of 16 bytes | sm_80 | a load and a store, which are done before the next instruction |
//! | `cp.async.commit_group`, `.wait_group` | sm_80 | nothing: there is nothing to wait for |
//! | `redux.sync` | sm_80 | a loop over the lanes of the mask, whose values are fetched one by one (`shfl.sync`) |
//! | `min.NaN.f32`, `max.NaN.f32` | sm_80 | the same without `.NaN`, and a choice of the NaN that the former gives |
//! | `min.f16`, `max.f16`, and of pairs (`.f16x2`) | sm_80 | extremes of `f32`, to which halves are widened and which are halves again, exactly |
//!
//! Of all else that only newer architectures have a kernel with any is refused.

use crate::{Arch, Error};

/// Instructions by how they begin, and the architecture that they came with.
const NEWER: [(&str, Arch); 17] = [
    ("cp.async", Arch::Sm80),
    ("redux.sync", Arch::Sm80),
    ("mbarrier.", Arch::Sm80),
    ("createpolicy.", Arch::Sm80),
    ("discard.", Arch::Sm80),
    ("applypriority.", Arch::Sm80),
    ("griddepcontrol.", Arch::Sm90),
    ("barrier.cluster.", Arch::Sm90),
    ("mapa", Arch::Sm90),
    ("getctarank", Arch::Sm90),
    ("elect.sync", Arch::Sm90),
    ("fence.proxy", Arch::Sm90),
    ("setmaxnreg.", Arch::Sm90),
    ("multimem.", Arch::Sm90),
    ("wgmma.", Arch::Sm90),
    ("stmatrix.", Arch::Sm90),
    ("red.async.", Arch::Sm90),
];

/// Kinds of arithmetic by what stands in an instruction, and the architecture that they came with.
const NEWER_KINDS: [(&str, Arch); 6] = [
    (".NaN", Arch::Sm80),
    (".xorsign", Arch::Sm80),
    (".relu", Arch::Sm80),
    (".tf32", Arch::Sm80),
    (".bf16", Arch::Sm80),
    (".cluster", Arch::Sm90),
];

/// Extremes of halves came with sm_80.
const HALF_EXTREMES: [&str; 4] = ["min.f16", "max.f16", "min.ftz.f16", "max.ftz.f16"];

/// What stands before `//`.
fn without_comment(line: &str) -> &str {
    match line.find('/') {
        Some(at) if line[at + 1..].starts_with('/') => &line[..at],
        Some(_) => line.split("//").next().unwrap_or_default(),
        None => line,
    }
}

/// The text for `arch`, in PTX of a `version` as LLVM counts it, from that for a newer one.
pub(crate) fn derive(ptx: &str, arch: Arch, version: u32) -> Result<String, Error> {
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        // What stands before an instruction: a guard.
        let code = without_comment(line).trim();
        let instruction = match code.strip_prefix('@') {
            Some(guarded) => {
                guarded.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start())
            }
            None => code,
        };
        let guarded = instruction.len() < code.len();
        if instruction.starts_with(".version ") {
            text.push_str(&format!(".version {}.{}", version / 10, version % 10));
        } else if instruction.starts_with(".target ") {
            text.push_str(&format!(".target {arch}"));
        } else if arch < Arch::Sm90
            && is_any(instruction, &["griddepcontrol.wait;", "griddepcontrol.launch_dependents;"])
            || arch < Arch::Sm80
                && (instruction == "cp.async.commit_group;"
                    || instruction.starts_with("cp.async.wait_group "))
        {
            // Braces around an instruction may not be empty of all, and comments count as nothing.
            text.push_str("\t// none");
        } else if let Some(other) =
            (arch < Arch::Sm80 && !guarded).then(|| another_way(instruction)).flatten()
        {
            text.push_str(&other);
        } else if let Some(least) = least(instruction).filter(|least| *least > arch) {
            return Err(Error::Options(format!(
                "PTX for {arch} cannot be made from that of a newer architecture: `{instruction}` needs {least}; \
                 name {arch} in CudaBuilder::archs, so that the crate is compiled for it"
            )));
        } else {
            text.push_str(line);
        }
        text.push('\n');
    }
    Ok(text)
}

fn is_any(instruction: &str, any: &[&str]) -> bool {
    any.contains(&instruction)
}

/// The architecture that an instruction needs, if it is not one that all have.
fn least(instruction: &str) -> Option<Arch> {
    let name = instruction.split_whitespace().next()?;
    // Directives, labels, braces.
    if name.starts_with(['.', '$', '{', '}', '(']) || name.ends_with(':') {
        return None;
    }
    let begins = NEWER.iter().filter(|(newer, _)| name.starts_with(newer));
    let kinds = NEWER_KINDS.iter().filter(|(kind, _)| name.contains(kind));
    let halves = HALF_EXTREMES.iter().any(|half| name.starts_with(half)).then_some(Arch::Sm80);
    begins.chain(kinds).map(|(_, arch)| *arch).chain(halves).max()
}

/// What does the same before sm_80, in braces of its own.
fn another_way(instruction: &str) -> Option<String> {
    if let Some(places) = instruction.strip_prefix("cp.async.cg.shared.global [") {
        let (to, from) = places.strip_suffix("], 16;")?.split_once("], [")?;
        return Some(format!(
            "{{ .reg .b32 %copied<4>; ld.global.cg.v4.b32 {{%copied0, %copied1, %copied2, %copied3}}, [{from}]; \
             st.shared.v4.b32 [{to}], {{%copied0, %copied1, %copied2, %copied3}}; }}"
        ));
    }
    let (name, operands) = instruction.split_once(char::is_whitespace)?;
    if let Some(operation) = name.strip_prefix("redux.sync.") {
        return lane_by_lane(operation, operands);
    }
    if let Some((extreme, kind)) =
        name.split_once('.').filter(|(extreme, _)| matches!(*extreme, "min" | "max"))
    {
        match kind {
            "f16" => return half_extreme(extreme, operands),
            "f16x2" => return extremes_of_pairs(extreme, operands),
            _ => {}
        }
    }
    let plain = match name {
        "min.NaN.f32" => "min.f32",
        "max.NaN.f32" => "max.f32",
        _ => return None,
    };
    let (to, of) = operands.trim().strip_suffix(';')?.split_once(", ")?;
    Some(format!(
        "{{ .reg .b32 %number; .reg .pred %is_none; {plain} %number, {of}; setp.nan.f32 %is_none, {of}; \
         selp.b32 {to}, 0x7fffffff, %number, %is_none; }}"
    ))
}

/// The operands of an instruction of three: where it goes, and of what.
fn three(operands: &str) -> Option<[&str; 3]> {
    let mut operands = operands.trim().strip_suffix(';')?.splitn(3, ", ");
    Some([operands.next()?, operands.next()?, operands.next()?])
}

/// The extreme of two halves in `f32`, which has all of theirs and orders zeros and passes over NaN as they do.
fn half_extreme(extreme: &str, operands: &str) -> Option<String> {
    let [to, a, b] = three(operands)?;
    Some(format!(
        "{{ .reg .b32 %wide<2>; cvt.f32.f16 %wide0, {a}; cvt.f32.f16 %wide1, {b}; \
         {extreme}.f32 %wide0, %wide0, %wide1; cvt.rn.f16.f32 {to}, %wide0; }}"
    ))
}

/// The same of two pairs.
fn extremes_of_pairs(extreme: &str, operands: &str) -> Option<String> {
    let [to, a, b] = three(operands)?;
    let mut text = format!(
        "{{ .reg .b32 %wide<2>; .reg .b16 %half<4>; mov.b32 {{%half0, %half1}}, {a}; mov.b32 {{%half2, %half3}}, {b};"
    );
    for lane in 0..2 {
        text.push_str(&format!(
            " cvt.f32.f16 %wide0, %half{lane}; cvt.f32.f16 %wide1, %half{}; {extreme}.f32 %wide0, %wide0, %wide1; \
             cvt.rn.f16.f32 %half{lane}, %wide0;",
            lane + 2
        ));
    }
    text.push_str(&format!(" mov.b32 {to}, {{%half0, %half1}}; }}"));
    Some(text)
}

/// What a warp's lanes of a mask have, folded by an operation as `redux.sync` names it: `operands` are where it goes, the value
/// and the mask. All lanes of the mask are there, with the same mask (the instruction's own rule), so that they go round
/// together; where the value itself lies must outlive the loop, so that the result is written at its end.
fn lane_by_lane(operation: &str, operands: &str) -> Option<String> {
    let nothing = match operation {
        "add.s32" | "or.b32" | "xor.b32" | "max.u32" => "0",
        "and.b32" | "min.u32" => "-1",
        "min.s32" => "0x7fffffff",
        "max.s32" => "0x80000000",
        _ => return None,
    };
    let [to, value, mask] = three(operands)?;
    Some(format!(
        "{{ .reg .b32 %left, %lane, %theirs, %all; .reg .pred %more; mov.b32 %left, {mask}; mov.b32 %all, {nothing}; \
         $more: bfind.u32 %lane, %left; shfl.sync.idx.b32 %theirs, {value}, %lane, 31, {mask}; {operation} %all, %all, %theirs; \
         shl.b32 %lane, 1, %lane; xor.b32 %left, %left, %lane; setp.ne.b32 %more, %left, 0; @%more bra $more; \
         mov.b32 {to}, %all; }}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = ".version 7.8\n.target sm_90\n\
        .visible .entry k()\n{\n\tgriddepcontrol.wait;\n\
        cp.async.cg.shared.global [%to], [%rd5], 16;\n\
        cp.async.commit_group;\n\tcp.async.wait_group 3;\n\tadd.s32 \t%r1, %r2, %r3; // redux.sync\n\
        \t@%p1 bra \t$L__BB0_2;\n$L__mbarrier.x:\n\tgriddepcontrol.launch_dependents;\n}\n";

    #[test]
    fn what_older_cards_lack_is_left_out_or_done_another_way() {
        let old = derive(NEW, Arch::Sm75, 74).unwrap();
        assert_eq!(
            old,
            ".version 7.4\n.target sm_75\n.visible .entry k()\n{\n\t// none\n\
             { .reg .b32 %copied<4>; ld.global.cg.v4.b32 {%copied0, %copied1, %copied2, %copied3}, [%rd5]; \
             st.shared.v4.b32 [%to], {%copied0, %copied1, %copied2, %copied3}; }\n\
             \t// none\n\t// none\n\tadd.s32 \t%r1, %r2, %r3; // redux.sync\n\
             \t@%p1 bra \t$L__BB0_2;\n$L__mbarrier.x:\n\t// none\n}\n"
        );
        let extreme = derive("\tmax.NaN.f32 \t%r1, %r2, 0f00000000;\n", Arch::Sm75, 74).unwrap();
        assert_eq!(
            extreme,
            "{ .reg .b32 %number; .reg .pred %is_none; max.f32 %number, %r2, 0f00000000; \
             setp.nan.f32 %is_none, %r2, 0f00000000; selp.b32 %r1, 0x7fffffff, %number, %is_none; }\n"
        );
        let folded = derive("\tredux.sync.min.u32 \t%r1, %r2, -1;\n", Arch::Sm75, 74).unwrap();
        assert_eq!(
            folded,
            "{ .reg .b32 %left, %lane, %theirs, %all; .reg .pred %more; mov.b32 %left, -1; mov.b32 %all, -1; \
             $more: bfind.u32 %lane, %left; shfl.sync.idx.b32 %theirs, %r2, %lane, 31, -1; min.u32 %all, %all, %theirs; \
             shl.b32 %lane, 1, %lane; xor.b32 %left, %left, %lane; setp.ne.b32 %more, %left, 0; @%more bra $more; \
             mov.b32 %r1, %all; }\n"
        );
        let half = derive("\tmin.f16 \t%rs1, %rs2, %rs3;\n", Arch::Sm75, 74).unwrap();
        assert_eq!(
            half,
            "{ .reg .b32 %wide<2>; cvt.f32.f16 %wide0, %rs2; cvt.f32.f16 %wide1, %rs3; min.f32 %wide0, %wide0, %wide1; \
             cvt.rn.f16.f32 %rs1, %wide0; }\n"
        );
        let pair = derive("\tmax.f16x2 \t%r1, %r2, %r3;\n", Arch::Sm75, 74).unwrap();
        assert_eq!(
            pair,
            "{ .reg .b32 %wide<2>; .reg .b16 %half<4>; mov.b32 {%half0, %half1}, %r2; mov.b32 {%half2, %half3}, %r3; \
             cvt.f32.f16 %wide0, %half0; cvt.f32.f16 %wide1, %half2; max.f32 %wide0, %wide0, %wide1; \
             cvt.rn.f16.f32 %half0, %wide0; \
             cvt.f32.f16 %wide0, %half1; cvt.f32.f16 %wide1, %half3; max.f32 %wide0, %wide0, %wide1; \
             cvt.rn.f16.f32 %half1, %wide0; \
             mov.b32 %r1, {%half0, %half1}; }\n"
        );
        let middle = derive(NEW, Arch::Sm80, 74).unwrap();
        assert!(middle.contains("cp.async.cg.shared.global [%to], [%rd5], 16;\n"), "{middle}");
        assert!(
            middle.contains("\tcp.async.wait_group 3;\n") && !middle.contains("griddepcontrol"),
            "{middle}"
        );
    }

    #[test]
    fn what_has_no_other_way_is_refused() {
        for (instruction, least) in [
            ("redux.sync.min.f32 %r1, %r2, %r3;", "sm_80"),
            ("@!%p1 redux.sync.add.s32 %r1, %r2, %r3;", "sm_80"),
            ("@%p1 cp.async.cg.shared.global [%r1], [%rd1], 16;", "sm_80"),
            ("cp.async.ca.shared.global [%r1], [%rd1], 4;", "sm_80"),
            ("@%p1 min.NaN.f32 %f1, %f2, %f3;", "sm_80"),
            ("max.NaN.f16x2 %r1, %r2, %r3;", "sm_80"),
            ("@%p1 max.f16x2 %r1, %r2, %r3;", "sm_80"),
            ("max.ftz.f16 %h1, %h2, %h3;", "sm_80"),
            ("fma.rn.bf16 %h1, %h2, %h3, %h4;", "sm_80"),
            ("barrier.cluster.arrive;", "sm_90"),
            ("ld.relaxed.cluster.u32 %r1, [%rd1];", "sm_90"),
        ] {
            let error = derive(&format!("\t{instruction}\n"), Arch::Sm75, 74).unwrap_err().to_string();
            assert!(error.contains(least) && error.contains("CudaBuilder::archs"), "{error}");
        }
        for instruction in [
            "min.f32 %f1, %f2, %f3;",
            "cvt.f32.f16 %f1, %h1;",
            "ld.global.nc.L1::no_allocate.L2::256B.v4.b32 {%r1}, [%rd1];",
        ] {
            assert!(derive(&format!("\t{instruction}\n"), Arch::Sm75, 74).is_ok(), "{instruction}");
        }
    }

    #[test]
    fn what_is_done_another_way_assembles() {
        let instructions = [
            "cp.async.cg.shared.global [%r1], [%rd1], 16;",
            "redux.sync.add.s32 %r2, %r1, -1;",
            "redux.sync.max.u32 %r1, %r2, %r1;",
            "min.NaN.f32 %r2, %r1, %r2;",
            "max.f16 %rs1, %rs2, %rs1;",
            "min.f16x2 %r1, %r1, %r2;",
        ];
        let new = format!(
            ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 to)\n{{\n\
             .reg .b16 %rs<3>;\n.reg .b32 %r<3>;\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [to];\n\
             ld.global.v2.u32 {{%r1, %r2}}, [%rd1];\nmov.b32 {{%rs1, %rs2}}, %r2;\n{}\n\
             st.global.u32 [%rd1], %r1;\nst.global.u16 [%rd1+4], %rs1;\nret;\n}}\n",
            instructions.join("\n")
        );
        let root = tempfile::tempdir().unwrap();
        let [ptx, cubin] = ["k.ptx", "k.cubin"].map(|name| root.path().join(name));
        let target = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/ptxas");
        let Some(ptxas) = crate::ptxas::find(&[target.into()]) else {
            eprintln!("skipped: no ptxas");
            return;
        };
        for arch in [Arch::Sm75, Arch::Sm80] {
            std::fs::write(&ptx, derive(&new, arch, 78).unwrap()).unwrap();
            let report = crate::ptxas::assemble(&ptxas, &ptx, arch, &cubin).unwrap();
            assert_eq!(report.len(), 1, "{arch}");
        }
    }
}
