//! What the look at a sample of the tags finds: whether they repeat at neighbouring places.

use std::ptr;

use warpfold_gpu_kernels::tags::{TagParams, gather, partition::Lists, width};
use warpfold_monoid::Sum;
use warpfold_simt::{
    shared,
    sim::{self, Buffer, Launch, Options, Schedule},
};

const K: u32 = 3000;
const LISTS: u32 = 3;

/// Clears a value for each tag, the lengths, and notes the choice: the words of the room.
fn cleared(tags: &[u8], width: u32, n: usize) -> Vec<u32> {
    let lists = Lists::of(LISTS as u64, 0, 4096, 4);
    let mut room = vec![u32::MAX; lists.bytes as usize / 4];
    let mut values = vec![u32::MAX; K as usize];
    let buffers = vec![
        Buffer::read_only("tags", tags),
        Buffer::writable("room", &mut room),
        Buffer::writable("values", &mut values),
    ];
    let params = TagParams::<Sum<u32>> {
        tags: tags.as_ptr(),
        values: ptr::null(),
        n: n as u64,
        output: ptr::null_mut(),
        partials: values.as_mut_ptr(),
        present: room.as_mut_ptr().cast(),
        first_bad: ptr::null_mut(),
        chunk: 4096,
        k: K,
        chunks: 0,
        range: 1024,
        width,
        copies: 0,
        floats: 0,
        lists: LISTS,
        base: 0,
        kept: ptr::null_mut(),
        held: ptr::null_mut(),
        op: Sum::new(),
    };
    let options =
        Options { schedule: Schedule::Concurrent { seed: n as u64 }, buffers, ..Options::default() };
    let address = ptr::from_ref(&params).expose_provenance();
    sim::launch(&Launch::new("clear", 3, gather::SIMPLE_THREADS), &options, || {
        // SAFETY: parameters that outlive the launch, whose memory is that of the buffers.
        unsafe {
            let params = &*ptr::with_exposed_provenance::<TagParams<Sum<u32>>>(address);
            gather::clear(params, shared!([u32; gather::SIMPLE_WARPS]));
        }
    })
    .unwrap();
    assert!(values.iter().all(|&value| value == 0));
    assert_eq!(room[..LISTS as usize], [0; LISTS as usize]);
    assert_eq!((lists.choice, lists.pieces % 16), (4 * LISTS as u64, 0));
    room.split_off(LISTS as usize)
}

/// Whether tags of that function of their place repeat; what is noted says so, and nothing else is written.
fn repeat(n: usize, tag: impl Fn(usize) -> u32) -> bool {
    let words: Vec<u8> = (0..n).flat_map(|i| tag(i).to_ne_bytes()).collect();
    let noted = cleared(&words, width::WORD, n);
    assert!(noted[0] <= 1 && noted[1..].iter().all(|&word| word == u32::MAX));
    noted[0] == 1
}

fn any(i: usize) -> u32 {
    let mixed = (i as u64).wrapping_add(0x9e37_79b9).wrapping_mul(0xd6e8_feb8_6659_fd93);
    ((mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 33) as u32 % K
}

#[test]
fn tags_repeat_if_as_many_lanes_meet_one() {
    for n in [70_001, 200_000] {
        assert!(!repeat(n, any), "any");
        assert!(!repeat(n, |i| i as u32 % K), "in turn");
        assert!(repeat(n, |_| K), "one, and out of range");
        // A tag of a share of the items is met twice by the square of it: more than one of eight, and less.
        assert!(repeat(n, |i| if any(i) % 20 < 8 { 7 } else { any(i) }), "two of five are one");
        assert!(!repeat(n, |i| if any(i) % 20 < 6 { 7 } else { any(i) }), "three of ten are one");
        for (run, expected) in [(4, false), (16, false), (28, false), (40, true), (64, true), (1000, true)] {
            assert_eq!(repeat(n, |i| any(i / run)), expected, "runs of {run}");
        }
        // Two of sixteen blocks of places, each longer than what lies between places that are looked at: fewer than one of eight.
        assert!(!repeat(n, |i| if i / 512 % 16 == 0 { 7 } else { any(i) }), "parts that repeat");
        assert!(repeat(n, |i| if i / 512 % 5 == 0 { 7 } else { any(i) }), "more such parts");
    }
    // Fewer than places that are looked at.
    for n in [1, 28, 29, 500] {
        assert!(repeat(n, |_| 5), "{n}");
    }
    assert!(!repeat(500, any));
    let bytes: Vec<u8> = (0..5000).map(|i| any(i) as u8).collect();
    assert_eq!(cleared(&bytes, width::U8, 5000)[0], 0);
    assert_eq!(cleared(&[9; 5000], width::U8, 5000)[0], 1);
}
