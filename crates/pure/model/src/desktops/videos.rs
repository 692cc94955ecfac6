//! What arrived of videos.

use virtbench_record::{DesktopVideo, DesktopVideoNumbers};

const SECOND_NS: f64 = 1e9;

/// Puts videos of one operation together; nothing where there are none.
pub(super) fn videos(played: &[DesktopVideo]) -> Option<DesktopVideoNumbers> {
    let rate = played.first()?.rate;
    let mut rates: Vec<f64> = played.iter().map(seen_rate).collect();
    rates.sort_by(f64::total_cmp);
    let all: u64 = played.iter().map(|one| u64::from(one.frames)).sum();
    let seen: u64 = played.iter().map(|one| u64::from(one.seen)).sum();
    Some(DesktopVideoNumbers {
        played: played.len() as u64,
        rate,
        seen_rate: rates.get(rates.len() / 2).copied().unwrap_or(0.0),
        dropped_percent: all.saturating_sub(seen) as f64 / all.max(1) as f64 * 100.0,
        longest_freeze_ns: played.iter().map(|one| one.freeze_ns).max().unwrap_or(0),
    })
}

/// Frames a second from the first one seen to the last one; none where there is but one.
fn seen_rate(video: &DesktopVideo) -> f64 {
    let after_first = f64::from(video.seen.saturating_sub(1));
    if video.elapsed_ns == 0 { 0.0 } else { after_first / (video.elapsed_ns as f64 / SECOND_NS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_drops_and_the_longest_freeze_of_videos_are_put_together() {
        let one = |seen, elapsed_ns, freeze_ns| DesktopVideo {
            frames: 100,
            rate: 25,
            seen,
            elapsed_ns,
            freeze_ns,
            unreadable: 0,
        };
        assert_eq!(videos(&[]), None);
        let played = [
            one(100, 3_960_000_000, 40_000_000),
            one(91, 3_600_000_000, 400_000_000),
            one(1, 0, 3_960_000_000),
        ];
        let found = videos(&played).unwrap();
        assert_eq!((found.played, found.rate, found.longest_freeze_ns), (3, 25, 3_960_000_000));
        assert!(
            (found.seen_rate - 25.0).abs() < 1e-9 && (found.dropped_percent - 36.0).abs() < 1e-9,
            "{found:?}"
        );
    }
}
