//! Each distribution against its closed form.

use super::*;
use proptest::prelude::*;

const DRAWS: u32 = 200_000;

/// How often each of `positions` is drawn, the most popular first, as shares.
fn shares(placement: Placement, positions: u64) -> Vec<f64> {
    let mut chooser = Chooser::new(placement, positions, 4096, 0, 9);
    let mut random = Random::new(5);
    let mut counts = vec![0u32; usize::try_from(positions).unwrap()];
    for _ in 0..DRAWS {
        counts[usize::try_from(chooser.draw(&mut random)).unwrap()] += 1;
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.iter().map(|count| f64::from(*count) / f64::from(DRAWS)).collect()
}

fn close(got: f64, want: f64, tolerance: f64, what: &str) {
    assert!((got - want).abs() < tolerance, "{what}: {got}, not {want}");
}

#[test]
fn zipf_gives_rank_k_a_share_of_k_to_the_minus_theta() {
    for theta in [0.8, 1.0, 1.2] {
        let shares = shares(Placement::Zipf { theta }, 1000);
        let whole: f64 = (1..=1000).map(|k| f64::from(k).powf(-theta)).sum();
        for (k, share) in (1..=5).zip(&shares) {
            close(*share, f64::from(k).powf(-theta) / whole, 0.004, &format!("theta {theta}, rank {k}"));
        }
        let hundred: f64 = (1..=100).map(|k| f64::from(k).powf(-theta)).sum::<f64>() / whole;
        close(shares[..100].iter().sum(), hundred, 0.01, "the first hundred");
    }
}

#[test]
fn pareto_puts_one_minus_h_on_h() {
    for h in [0.1, 0.2, 0.3] {
        let shares = shares(Placement::Pareto { h }, 1000);
        for x in [h, 0.5] {
            let ranks = usize::try_from(whole(x * 1000.0)).unwrap();
            // The closed form, x^(ln(1-h)/ln h); for x = h it is 1 - h.
            close(
                shares[..ranks].iter().sum(),
                x.powf((1.0 - h).ln() / h.ln()),
                0.01,
                &format!("h {h}, x {x}"),
            );
        }
    }
}

#[test]
fn the_hot_part_takes_its_share() {
    let mut chooser =
        Chooser::new(Placement::Hot { data_percent: 10.0, access_percent: 90.0 }, 1000, 512, 0, 1);
    let mut random = Random::new(3);
    let hot = (0..DRAWS).filter(|_| chooser.draw(&mut random) < 100).count();
    close(hot as f64 / f64::from(DRAWS), 0.9, 0.005, "hot accesses");
}

#[test]
fn a_stride_walks_and_wraps() {
    let mut chooser = Chooser::new(Placement::Strided { stride_bytes: 12 << 10 }, 10, 4096, 2, 1);
    let mut random = Random::new(3);
    let drawn: Vec<u64> = (0..6).map(|_| chooser.draw(&mut random)).collect();
    assert_eq!(drawn, [2, 5, 8, 2, 5, 8], "what another worker's stride begins with is left to it");
}

#[test]
fn popular_offsets_do_not_cluster() {
    let scatter = Scatter::new(100_000, 1);
    let mut places: Vec<u64> = (0..100).map(|rank| scatter.place(rank)).collect();
    places.sort_unstable();
    // A hundred independent places leave about one pair nearer than 10; a hundred neighbours leave 99.
    let near = places.windows(2).filter(|pair| pair[1] - pair[0] < 10).count();
    assert!(near < 12, "{near} of the hundred most popular lie together");
    assert!(places[0] < 10_000 && places[99] > 90_000, "{places:?}");
}

#[test]
fn texts_are_read_or_explained() {
    assert_eq!(parse_placement("uniform"), Ok(Placement::Uniform));
    assert_eq!(parse_placement("zipf:1.1"), Ok(Placement::Zipf { theta: 1.1 }));
    assert_eq!(parse_placement("pareto:0.2"), Ok(Placement::Pareto { h: 0.2 }));
    assert_eq!(parse_placement("hot:10/90"), Ok(Placement::Hot { data_percent: 10.0, access_percent: 90.0 }));
    assert_eq!(parse_placement("stride:1MiB"), Ok(Placement::Strided { stride_bytes: 1 << 20 }));
    for text in ["", "zipf", "zipf:x", "hot:10", "normal:3", "uniform:1"] {
        assert!(parse_placement(text).is_err(), "{text}");
    }
    for text in ["zipf:0", "zipf:nan", "pareto:1", "hot:0/90", "hot:10/100", "stride:1000", "stride:0"] {
        assert!(parse_placement(text).unwrap().validate(4096).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn scattering_is_a_permutation(count in 1u64..3000, seed in any::<u64>()) {
        let scatter = Scatter::new(count, seed);
        let places: std::collections::BTreeSet<u64> = (0..count).map(|rank| scatter.place(rank)).collect();
        prop_assert_eq!(places.len() as u64, count);
        prop_assert!(places.last().is_none_or(|last| *last < count));
    }

    #[test]
    fn every_draw_is_inside(positions in 1u64..5000, kind in 0..5, seed in any::<u64>()) {
        let placement = [
            Placement::Uniform,
            Placement::Zipf { theta: 1.0 },
            Placement::Pareto { h: 0.3 },
            Placement::Hot { data_percent: 20.0, access_percent: 70.0 },
            Placement::Strided { stride_bytes: 7 * 512 },
        ][usize::try_from(kind).unwrap()];
        let mut chooser = Chooser::new(placement, positions, 512, seed % 100, seed);
        let mut random = Random::new(seed);
        for _ in 0..300 {
            prop_assert!(chooser.draw(&mut random) < positions);
        }
    }

    #[test]
    fn no_text_panics(text in ".{0,30}") {
        let _ = parse_placement(&text).map(|placement| placement.validate(512));
    }
}
