//! The models against closed forms.

use super::*;
use virtbench_units::Random;

const N: u32 = 200_000;

/// Mean and mean square of `n` draws.
fn moments(n: u32, mut draw: impl FnMut() -> f64) -> (f64, f64) {
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..n {
        let x = draw();
        sum += x;
        squares += x * x;
    }
    (sum / f64::from(n), squares / f64::from(n))
}

fn assert_near(got: f64, want: f64, share: f64) {
    assert!((got / want - 1.0).abs() < share, "{got} for {want}");
}

#[test]
fn mean_and_full_stroke_seek_are_the_data_sheet_s() {
    let seek = HddModel::default().seek;
    assert_near(seek.mean_ms(), 11.0, 0.01);
    assert_near(seek.ms(1.0), 22.0, 1e-12);
    let mut random = Random::new(1);
    let (mean, _) = moments(N, || seek.ms((random.unit() - random.unit()).abs()));
    assert_near(mean, seek.mean_ms(), 0.005);
}

#[test]
fn a_random_block_takes_seek_and_half_a_turn_and_its_transfer() {
    let model = HddModel::default();
    let mut disk = Hdd::new(model, 2);
    let mut random = Random::new(3);
    let blocks = model.capacity_bytes / 4096;
    let (mean_ms, _) = moments(N, || disk.service_ns(random.below(blocks) * 4096, 4096) as f64 / 1e6);
    let want = model.seek.mean_ms() + model.revolution_ms() / 2.0 + 4096.0 / model.bytes_per_s * 1e3;
    assert_near(mean_ms, want, 0.005);
    assert_near(1e3 / mean_ms, 66.0, 0.01);
}

#[test]
fn rotation_is_uniform_over_a_turn() {
    let still = SeekCurve { settle_ms: 0.0, root_ms: 0.0, linear_ms: 0.0 };
    for rpm in [5400.0, 7200.0, 15_000.0] {
        let model = HddModel { rpm, seek: still, bytes_per_s: 1e12, ..HddModel::default() };
        let mut disk = Hdd::new(model, 4);
        let mut offset = 0;
        let (mean, square) = moments(N, || {
            offset = (offset + 8192) % 1_000_000;
            disk.service_ns(offset, 1) as f64 / 1e6
        });
        let turn = 60e3 / rpm;
        assert_near(mean, turn / 2.0, 0.01);
        assert_near(square - mean * mean, turn * turn / 12.0, 0.02);
    }
}

#[test]
fn what_goes_on_where_the_last_ended_streams() {
    let model = HddModel::default();
    let mut disk = Hdd::new(model, 5);
    disk.service_ns(1 << 30, 65536);
    assert_near(disk.service_ns((1 << 30) + 65536, 800_000) as f64, 10e6, 1e-9);
}

#[test]
fn the_data_sheet_s_rates_come_out() {
    let model = SsdModel::new(SsdProfile::Spec);
    assert_near(model.mean_write_us(), 200.0, 1e-9);
    let mut ssd = Ssd::new(model, 6);
    let (read, _) = moments(1000, || ssd.service_ns(false, 4096) as f64 / 1e9);
    assert_near(1.0 / read, 20_000.0, 1e-6);
    let (write, _) = moments(N, || ssd.service_ns(true, 4096) as f64 / 1e9);
    assert_near(1.0 / write, 5_000.0, 0.01);
}

#[test]
fn four_fifths_of_the_paper_s_batches_have_no_stall() {
    let mut ssd = Ssd::new(SsdModel::new(SsdProfile::PaperFit), 7);
    let mut random = Random::new(8);
    let mut clean = 0u32;
    for _ in 0..20_000 {
        let ms: f64 = (0..49).map(|_| ssd.service_ns(random.unit() < 0.5, 4096) as f64 / 1e6).sum();
        clean += u32::from((ms - 19.4).abs() < 0.25);
    }
    assert_near(f64::from(clean) / 20_000.0, 0.81, 0.02);
}

#[test]
fn a_long_write_pays_for_every_block_it_erases() {
    let model = SsdModel { erase_low_ms: 4.0, erase_high_ms: 4.0, ..SsdModel::new(SsdProfile::Spec) };
    let mut ssd = Ssd::new(model, 9);
    let pages = 64 * 10;
    let ms = ssd.service_ns(true, pages * 4096) as f64 / 1e6;
    let transfer = model.write_us / 1e3 + (pages - 1) as f64 * 4096.0 / model.write_bytes_per_s * 1e3;
    assert_near(ms - transfer, 40.0, 1e-6);
}

#[test]
fn impossible_disks_are_named() {
    let rpm = HddModel { rpm: 0.0, ..HddModel::default() };
    assert!(rpm.check().unwrap_err().to_string().contains("`rpm` 0"));
    let erase = SsdModel { pages_per_erase: 0, ..SsdModel::new(SsdProfile::Spec) };
    assert!(erase.check().is_err());
    assert!(HddModel::default().check().is_ok());
    assert!(SsdModel::new(SsdProfile::PaperFit).check().is_ok());
    assert!("fast".parse::<SsdProfile>().is_err());
}
