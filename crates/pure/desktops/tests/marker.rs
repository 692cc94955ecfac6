//! The marker under noise and lossy encodings: what is read is what was drawn, or nothing.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use proptest::prelude::*;
use virtbench_desktops::{CELL, HEIGHT, Marker, Phase, Unreadable, WIDTH, level, read_marker};
use virtbench_units::Random;

type Picture = Vec<Vec<f64>>;

fn picture(marker: Marker) -> Picture {
    (0..HEIGHT).map(|y| (0..WIDTH).map(|x| f64::from(level(marker, x, y))).collect()).collect()
}

fn read(picture: &Picture) -> Result<Marker, Unreadable> {
    read_marker(|x, y| picture[usize::from(y)][usize::from(x)].clamp(0.0, 255.0).round() as u8)
}

fn noisy(picture: &Picture, amplitude: f64, random: &mut Random) -> Picture {
    let shaken = |pixel: &f64| pixel + (random.unit() - 0.5) * 2.0 * amplitude;
    let mut rows = picture.clone();
    let mut shaken = shaken;
    for pixel in rows.iter_mut().flatten() {
        *pixel = shaken(pixel);
    }
    rows
}

/// What JPEG does to luminance: blocks of 8 by 8 from `shift` on, their cosine transform rounded to multiples of `step` that grow
/// with the frequency.
fn lossy(picture: &Picture, step: f64, shift: usize) -> Picture {
    let mut result = picture.clone();
    let size = usize::from(CELL);
    let (width, height) = (usize::from(WIDTH), usize::from(HEIGHT));
    for top in (0..height + size).step_by(size) {
        for left in (0..width + size).step_by(size) {
            let at = |x: usize, y: usize| {
                let (x, y) = ((left + x).saturating_sub(shift), (top + y).saturating_sub(shift));
                picture[y.min(height - 1)][x.min(width - 1)]
            };
            let block = transform(&at, step);
            for (y, row) in block.iter().enumerate() {
                for (x, pixel) in row.iter().enumerate() {
                    let place = (top + y).checked_sub(shift).zip((left + x).checked_sub(shift));
                    if let Some(found) = place.and_then(|(y, x)| result.get_mut(y)?.get_mut(x)) {
                        *found = *pixel;
                    }
                }
            }
        }
    }
    result
}

fn transform(at: &dyn Fn(usize, usize) -> f64, step: f64) -> Vec<Vec<f64>> {
    let waves: [[f64; 8]; 8] = std::array::from_fn(|u| {
        let scale = if u == 0 { (1.0_f64 / 8.0).sqrt() } else { 0.5 };
        std::array::from_fn(|x| {
            scale * ((2.0 * x as f64 + 1.0) * u as f64 * std::f64::consts::PI / 16.0).cos()
        })
    });
    let wave = |x: usize, u: usize| waves[u][x];
    let sum = |f: &dyn Fn(usize, usize) -> f64| {
        (0..8).flat_map(|y| (0..8).map(move |x| (x, y))).map(|(x, y)| f(x, y)).sum::<f64>()
    };
    let mut kept = [[0.0; 8]; 8];
    for (v, row) in kept.iter_mut().enumerate() {
        for (u, place) in row.iter_mut().enumerate() {
            let value = sum(&|x, y| (at(x, y) - 128.0) * wave(x, u) * wave(y, v));
            let quantum = step * (1.0 + (u + v) as f64);
            *place = (value / quantum).round() * quantum;
        }
    }
    let pixel = |x: usize, y: usize| sum(&|u, v| kept[v][u] * wave(x, u) * wave(y, v)) + 128.0;
    (0..8).map(|y| (0..8).map(|x| pixel(x, y)).collect()).collect()
}

fn markers() -> impl Strategy<Value = Marker> {
    let phases = prop_oneof![Just(Phase::Idle), Just(Phase::Begun), Just(Phase::Ended), Just(Phase::Failed)];
    (0..1024u16, any::<u8>(), phases, 0..=Marker::LAST_REVISION)
        .prop_map(|(sequence, operation, phase, revision)| Marker { sequence, operation, phase, revision })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_drawn_is_read_through_noise_and_a_dull_picture(marker in markers(), seed: u64, dull in 0.5f64..1.0) {
        let mut random = Random::new(seed);
        let drawn: Picture = picture(marker).iter().map(|row| row.iter().map(|p| 128.0 + (p - 128.0) * dull).collect()).collect();
        prop_assert_eq!(read(&noisy(&drawn, 30.0, &mut random)), Ok(marker));
    }

    #[test]
    fn what_is_drawn_is_read_through_a_lossy_encoding(marker in markers(), step in 1.0f64..40.0, shift in 0usize..8) {
        prop_assert_eq!(read(&lossy(&picture(marker), step, shift)), Ok(marker));
    }

    #[test]
    fn whatever_the_damage_nothing_else_is_read(marker in markers(), seed: u64, amplitude in 0.0f64..600.0, step in 1.0f64..600.0, shift in 0usize..8) {
        let mut random = Random::new(seed);
        let damaged = lossy(&noisy(&picture(marker), amplitude, &mut random), step, shift);
        prop_assert!(read(&damaged).is_err() || read(&damaged) == Ok(marker));
    }

    #[test]
    fn cells_that_are_turned_over_are_noticed(marker in markers(), other in markers(), mask: u64) {
        // Any cells of one marker among those of another, as an update that is half there.
        let mixed = |x: u16, y: u16| {
            let cell = u32::from(y / CELL) * 16 + u32::from(x / CELL);
            let from = if mask >> (cell % 64) & 1 == 1 { marker } else { other };
            level(from, x, y)
        };
        let found = read_marker(mixed);
        prop_assert!(found.is_err() || found == Ok(marker) || found == Ok(other), "{:?}", found);
    }
}

/// How many are missed at each strength of damage, and that none is taken for another one.
#[test]
fn missed_markers_are_counted_and_none_is_mistaken() {
    let mut random = Random::new(7);
    let mut missed = Vec::new();
    for amplitude in [0.0, 100.0, 200.0, 400.0, 800.0] {
        let mut count = 0;
        for sequence in 0..200 {
            let marker = Marker { sequence, operation: 3, phase: Phase::Begun, revision: 0 };
            match read(&noisy(&picture(marker), amplitude, &mut random)) {
                Ok(found) => assert_eq!(found, marker),
                Err(_) => count += 1,
            }
        }
        missed.push(count);
    }
    assert_eq!(missed[..2], [0, 0], "{missed:?}");
    assert!(missed.is_sorted() && missed[4] > 150, "{missed:?}");
    // Cells at random within a right frame: only the checksum stands between them and a marker.
    for _ in 0..20_000 {
        let cells = random.next_u64();
        let drawn = Marker { sequence: 1, operation: 1, phase: Phase::Idle, revision: 0 };
        let found = read_marker(|x, y| match (x / CELL, y / CELL) {
            (0 | 17, _) => level(drawn, x, y),
            (column, row) => {
                if cells >> (row * 16 + column - 1) & 1 == 1 {
                    255
                } else {
                    0
                }
            }
        });
        assert_eq!(found, Err(Unreadable::Checksum));
    }
    assert_eq!(read_marker(|_, _| 90), Err(Unreadable::Absent));
}
