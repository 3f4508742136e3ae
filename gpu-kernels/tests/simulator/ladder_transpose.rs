//! The literature's transposes, with sides around a tile's, half a tile's and a whole row of tiles.

use std::ptr;

use warpfold_gpu_kernels::ladder::transpose::{
    Form, TransposeParams, blocks, copy, low_height, low_width, select, slots, tiles,
};
use warpfold_simt::{
    shared,
    sim::{self, Buffer, Launch, Options, Schedule},
};

#[derive(Clone, Copy, Debug)]
enum Tile {
    Small,
    Large,
    LargeFour,
}

impl Tile {
    fn dim(self) -> u64 {
        if matches!(self, Tile::Small) { 16 } else { 32 }
    }
}

fn transpose(tile: Tile, height: u64, width: u64) {
    let n = (height * width) as usize;
    let input: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
    let mut output = vec![0_u32; n];
    let form = select(height, width, tile.dim());
    let params = TransposeParams { input: input.as_ptr(), output: output.as_mut_ptr(), height, width };
    let address = ptr::from_ref(&params).expose_provenance();
    let options = Options::with_schedule(Schedule::Seeded(height))
        .buffer(Buffer::read_only("input", &input))
        .buffer(Buffer::writable("output", &mut output));
    let threads = match (form, tile) {
        (Form::Copy, _) | (_, Tile::Small) | (Form::Tiles, Tile::LargeFour) => 256,
        _ => 1024,
    };
    let what = format!("{form:?}, {tile:?}, [{height}][{width}]");
    let grid = blocks(form, height, width, tile.dim()) as u32;
    sim::launch(&Launch::new(&what, grid, threads), &options, || {
        let small = shared!([u32; slots(16)]);
        let large = shared!([u32; slots(32)]);
        // SAFETY: parameters that outlive the launch; the grid is the form's.
        unsafe {
            let params = &*ptr::with_exposed_provenance::<TransposeParams<u32>>(address);
            match (form, tile) {
                (Form::Copy, _) => copy(params),
                (Form::LowHeight, Tile::Small) => low_height::<u32, 16>(params, small),
                (Form::LowHeight, _) => low_height::<u32, 32>(params, large),
                (Form::LowWidth, Tile::Small) => low_width::<u32, 16>(params, small),
                (Form::LowWidth, _) => low_width::<u32, 32>(params, large),
                (Form::Tiles, Tile::Small) => tiles::<u32, 16, 16>(params, small),
                (Form::Tiles, Tile::Large) => tiles::<u32, 32, 32>(params, large),
                (Form::Tiles, Tile::LargeFour) => tiles::<u32, 32, 8>(params, large),
            }
        }
    })
    .unwrap_or_else(|fault| panic!("{what}: {fault:?}"));
    let wanted = |i: usize| input[i % height as usize * width as usize + i / height as usize];
    let differs = (0..n).find(|&i| output[i] != wanted(i));
    assert_eq!(differs, None, "{what}");
}

#[test]
fn rows_become_columns() {
    let sides = [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65, 600];
    for tile in [Tile::Small, Tile::Large, Tile::LargeFour] {
        for height in sides {
            for width in sides {
                // The largest with small sides alone: whole rows of tiles.
                if height.min(width) < 20 || height.max(width) < 100 {
                    transpose(tile, height, width);
                }
            }
        }
    }
}

#[test]
fn the_form_follows_from_the_shorter_side() {
    assert_eq!(select(1, 50, 16), Form::Copy);
    assert_eq!(select(50, 1, 16), Form::Copy);
    assert_eq!(select(8, 17, 16), Form::LowHeight);
    assert_eq!(select(17, 8, 16), Form::LowWidth);
    // As wide as a tile: the pieces would not fill it.
    assert_eq!(select(8, 16, 16), Form::Tiles);
    assert_eq!(select(9, 100, 16), Form::Tiles);
}
