//! What the device build must consist of. The simulator cannot see a missing fence or a wrong cache hint, and nothing
//! on the host sees a generic load, a contraction or a spill; here the fixture's kernels are compiled to PTX and read.
//!
//! Needs a device toolchain; without one these tests fail and say how to install it. Where `ptxas` is found, every
//! kernel is also assembled, and a stack frame or spill is an error.

use std::path::Path;
use std::sync::OnceLock;

use warpfold_ptx_builder::{Arch, Build, CudaBuilder};

const ARCHS: [Arch; 3] = [Arch::Sm75, Arch::Sm80, Arch::Sm90];

fn build() -> &'static Build {
    static BUILD: OnceLock<Build> = OnceLock::new();
    BUILD.get_or_init(|| {
        let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
        CudaBuilder::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kernels"))
            .archs(ARCHS)
            .assemble_only(ARCHS)
            .strict(true)
            // The cache hints of `loads` ask for 7.4.
            .ptx_version(78)
            .out_dir(temporary.join("simt-golden"))
            // Where build scripts compile kernels, too: what both need is built once.
            .target_dir(temporary.parent().unwrap_or(temporary).join("warpfold-ptx"))
            .ptxas_search(temporary.parent().unwrap_or(temporary).join("ptxas"))
            .cargo_directives(false)
            .build()
            .unwrap_or_else(|error| panic!("{error}"))
    })
}

/// A kernel's PTX without comments, blanks at line ends and directives in between.
fn ptx(kernel: &str, arch: Arch) -> String {
    let text = build().ptx(kernel, arch).unwrap_or_else(|error| panic!("{error}"));
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or("").trim());
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The lines that begin with an instruction, `bar.sync` say, predicated or not.
fn lines<'a>(ptx: &'a str, instruction: &str) -> Vec<&'a str> {
    let opcode = |line: &'a str| match line.strip_prefix('@') {
        Some(_) => line.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim()),
        None => line,
    };
    ptx.lines().filter(|line| opcode(line).starts_with(instruction)).collect()
}

#[track_caller]
fn has(ptx: &str, count: usize, instruction: &str) {
    assert_eq!(lines(ptx, instruction).len(), count, "`{instruction}` in\n{ptx}");
}

#[test]
fn no_kernel_uses_local_memory_or_generic_accesses() {
    for module in &build().modules {
        for arch in ARCHS {
            let ptx = ptx(&module.group, arch);
            assert!(!ptx.contains(".local"), "{} for {arch}:\n{ptx}", module.group);
            // Those written to cuda_std's API dereference pointers of their own.
            if !["add", "reverse", "warp_sum"].contains(&module.group.as_str()) {
                for line in lines(&ptx, "ld.").into_iter().chain(lines(&ptx, "st.")) {
                    let named = [".global", ".shared", ".param"].iter().any(|space| line.contains(space));
                    assert!(named, "{} for {arch}: {line}", module.group);
                }
            }
        }
    }
    if let Some(ptxas) = &build().ptxas {
        let assembled = build().modules.iter().map(|module| module.resources.len()).sum::<usize>();
        assert!(assembled >= build().modules.len() * ARCHS.len(), "{} was not run on all", ptxas.display());
    }
}

#[test]
fn a_last_block_reduction_is_what_it_says() {
    for arch in ARCHS {
        let ptx = ptx("last_block", arch);
        has(&ptx, 1, "ld.global.v4.u32");
        has(&ptx, 20 * 2, "shfl.sync.down.b32");
        has(&ptx, 3, "bar.sync");
        has(&ptx, 3, "st.shared");
        has(&ptx, 3, "ld.shared");
        has(&ptx, 1, "ld.global.cg.u64");
        assert!(ptx.contains(".maxntid 512"), "{ptx}");
        assert!(ptx.contains(".minnctapersm 2"), "{ptx}");
        assert!(!ptx.contains("launch_bounds"), "{ptx}");
        // The partial, a fence, the ticket, a fence.
        let order =
            ["st.global.u64", "fence.acq_rel.gpu", "atom.relaxed.gpu.global.inc.u32", "fence.acq_rel.gpu"];
        let mut rest = ptx.lines().skip_while(|line| !line.starts_with(order[0]));
        for instruction in order {
            assert!(rest.any(|line| line.starts_with(instruction)), "{instruction} in its place in\n{ptx}");
        }
        // Nothing may be moved in front of the last fence but what the branch around it needs.
        assert_eq!(lines(&ptx, "fence").len(), 2);
    }
}

#[test]
fn floats_are_not_contracted() {
    for arch in ARCHS {
        let ptx = ptx("contraction", arch);
        has(&ptx, 1, "mul.rn.f32");
        has(&ptx, 1, "add.rn.f32");
        has(&ptx, 0, "fma");
        for module in &build().modules {
            has(&self::ptx(&module.group, arch), 0, "fma");
        }
    }
}

#[test]
fn shuffles_take_one_instruction_a_word() {
    let words = [
        ("shuffle_u8", 1),
        ("shuffle_u16", 1),
        ("shuffle_f32", 1),
        ("shuffle_f64", 2),
        ("shuffle_three", 3),
        ("shuffle_five", 2),
        ("shuffle_eighty", 20),
    ];
    for (kernel, words) in words {
        for arch in ARCHS {
            let ptx = ptx(kernel, arch);
            for mode in ["down", "up", "bfly", "idx"] {
                has(&ptx, words, &format!("shfl.sync.{mode}.b32"));
            }
            // Clamp and segment mask, packed: 0 for up, 31 else; 24 << 8 | 31 for a width of 8.
            for (mode, clamp) in [
                ("down", ", 3, 31, -1;"),
                ("up", ", 1, 0, -1;"),
                ("bfly", ", 16, 31, -1;"),
                ("idx", ", 0, 6175, -1;"),
            ] {
                for line in lines(&ptx, &format!("shfl.sync.{mode}.b32")) {
                    assert!(line.ends_with(clamp), "{line}");
                }
            }
        }
    }
}

#[test]
fn the_flag_of_a_shuffle_is_the_instruction_s_own() {
    for arch in ARCHS {
        let ptx = ptx("flagged", arch);
        for mode in ["down", "up", "bfly", "idx"] {
            let instruction = format!("shfl.sync.{mode}.b32");
            has(&ptx, 1, &instruction);
            for line in lines(&ptx, &instruction) {
                assert!(line.contains("|%p"), "{line}");
            }
        }
        // Else each lane would work out its place.
        has(&ptx, 0, "and.b32");
    }
}

#[test]
fn votes_matches_and_barriers_are_the_convergent_ones() {
    for arch in ARCHS {
        let votes = ptx("votes", arch);
        for (count, instruction) in [
            (1, "vote.sync.all.pred"),
            (1, "vote.sync.any.pred"),
            (1, "vote.sync.uni.pred"),
            (1, "vote.sync.ballot.b32"),
            (2, "match.any.sync.b32"),
            (1, "match.any.sync.b64"),
            (1, "activemask.b32"),
            (1, "bar.warp.sync"),
        ] {
            has(&votes, count, instruction);
        }
        let barriers = ptx("barriers", arch);
        for instruction in [
            "bar.red.popc.u32",
            "bar.red.and.pred",
            "bar.red.or.pred",
            "nanosleep.u32",
            "fence.sc.cta",
            "fence.sc.gpu",
            "fence.sc.sys",
            "fence.acq_rel.cta",
            "fence.acq_rel.sys",
        ] {
            has(&barriers, 1, instruction);
        }
        assert!(barriers.contains("%clock64"));
    }
}

#[test]
fn redux_is_one_instruction_from_sm_80_on() {
    let old = ptx("redux", Arch::Sm75);
    has(&old, 0, "redux");
    has(&old, 4 * 5, "shfl.sync.bfly.b32");
    for arch in [Arch::Sm80, Arch::Sm90] {
        let ptx = ptx("redux", arch);
        for instruction in
            ["redux.sync.add.s32", "redux.sync.min.u32", "redux.sync.max.s32", "redux.sync.xor.b32"]
        {
            has(&ptx, 1, instruction);
        }
        has(&ptx, 0, "shfl");
    }
}

#[test]
fn loads_and_stores_carry_their_hints() {
    for arch in ARCHS {
        let ptx = ptx("loads", arch);
        let l2 = if arch == Arch::Sm75 { "ld.global.L2::128B.u32" } else { "ld.global.L2::256B.u32" };
        for (count, instruction) in [
            (1, "ld.global.cs.v4.u32"),
            (1, "ld.global.L1::no_allocate.v4.u32"),
            (1, "ld.global.nc.L1::no_allocate.v4.u32"),
            (1, "ld.global.nc.v2.u64"),
            (1, "ld.global.lu.u64"),
            (1, "ld.global.L2::128B.v4.u32"),
            (1, l2),
            // 12 bytes, aligned to 4.
            (3, "ld.global.cg.u32"),
            (3, "st.global.u32"),
            (1, "st.global.v4.u32"),
            (1, "st.global.cs.v4.u32"),
            (1, "st.global.cs.u8"),
        ] {
            has(&ptx, count, instruction);
        }
    }
}

#[test]
fn atomics_carry_order_and_scope() {
    for arch in ARCHS {
        let ptx = ptx("atomics", arch);
        for instruction in [
            "atom.acq_rel.gpu.global.add.u32",
            "atom.relaxed.cta.global.max.s32",
            "atom.release.sys.global.min.u64",
            "atom.acquire.gpu.global.xor.b64",
            "atom.relaxed.gpu.global.add.f64",
            "atom.acq_rel.sys.global.exch.b32",
            "atom.acq_rel.gpu.global.cas.b64",
            "ld.relaxed.gpu.global.v2.u64",
            "st.relaxed.gpu.global.v2.u64",
            "ld.acquire.gpu.global.b32",
            "ld.relaxed.gpu.global.b32",
            "ld.volatile.global.b32",
            "st.release.gpu.global.b32",
            "st.relaxed.gpu.global.b32",
            "st.volatile.global.b32",
        ] {
            has(&ptx, 1, instruction);
        }
    }
}

#[test]
fn dynamic_shared_memory_is_declared_without_a_size() {
    for arch in ARCHS {
        let ptx = ptx("dynamic", arch);
        has(&ptx, 1, ".extern .shared .align 16 .b8");
        has(&ptx, 1, "st.shared.b64");
        has(&ptx, 1, "ld.shared.b64");
    }
}

#[test]
fn copies_are_asked_for_and_waited_for_where_there_are_any() {
    for arch in ARCHS {
        let (ptx, old) = (ptx("copies", arch), arch == Arch::Sm75);
        has(&ptx, if old { 0 } else { 2 }, "cp.async.cg.shared.global");
        has(&ptx, if old { 0 } else { 2 }, "cp.async.commit_group");
        has(&ptx, if old { 0 } else { 1 }, "cp.async.wait_group 1");
        has(&ptx, if old { 0 } else { 1 }, "cp.async.wait_group 0");
        has(&ptx, if old { 2 } else { 0 }, "ld.global");
    }
}

#[test]
fn kernels_in_the_style_of_cuda_std_build() {
    for arch in ARCHS {
        assert!(ptx("add", arch).contains(".visible .entry add("));
        has(&ptx("reverse", arch), 1, "bar.sync");
        has(&ptx("reverse", arch), 1, "st.shared.b32");
        has(&ptx("warp_sum", arch), 5, "shfl.sync.down.b32");
    }
}
