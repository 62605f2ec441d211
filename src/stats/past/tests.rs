//! A fall is one just at its thresholds and none just below.

use super::*;

const SECOND: i64 = 1_000_000_000;
const NOW: i64 = 1_000_000 * SECOND;

/// Requests of 400 steps over the hour before the last five minutes and over these, with so many accepted drafts each; every
/// other one accepts `spread` more and the others as many less.
fn past(before: (i64, u64), recent: (i64, u64), spread: u64) -> Past {
    let mut past = Past::default();
    let mut put = |(n, accepted): (i64, u64), from: i64, length: i64| {
        for number in 0..n {
            let accepted = if number % 2 == 0 {
                accepted + spread
            } else {
                accepted - spread
            };
            past.put(from + number * length / n, 400, accepted);
        }
    };
    put(before, NOW - 3_800 * SECOND, 3_500 * SECOND);
    put(recent, NOW - 290 * SECOND, 290 * SECOND);
    past
}

#[test]
fn a_twentieth_below_the_past_is_a_fall_and_less_is_none() {
    // 1 + 800 / 400 = 3; 2.8475 is 5.1 % less, and 2.8525 is 4.9 %.
    let fall = past((200, 800), (40, 739), 1).fall(NOW).unwrap();
    assert!((fall.past.0 - 3.0).abs() < 1e-12 && (fall.recent.0 - 2.8475).abs() < 1e-12);
    assert_eq!((fall.past.1, fall.recent.1), (200, 40));
    assert_eq!(past((200, 800), (40, 741), 1).fall(NOW), None);
    assert_eq!(past((200, 800), (40, 900), 1).fall(NOW), None, "a rise");
}

#[test]
fn the_interval_is_the_normal_one_of_two_ratios() {
    // Var = Σ(±10)² / (400 n)² · n / (n − 1) = 1 / (1600 (n − 1)).
    let fall = past((200, 800), (40, 600), 10).fall(NOW).unwrap();
    let half = NORMAL * (1.0 / (1_600.0 * 199.0) + 1.0 / (1_600.0 * 39.0_f64)).sqrt();
    assert!((fall.interval.low - (-0.5 - half)).abs() < 1e-9);
    assert!((fall.interval.high - (-0.5 + half)).abs() < 1e-9);
    assert_eq!(fall.interval.level, 0.999);
}

#[test]
fn a_fall_that_chance_can_give_is_none() {
    // The same fall as above. ± 340 gives a half width of 0.49, ± 355 one of 0.51.
    assert!(past((200, 800), (40, 600), 340).fall(NOW).is_some());
    assert_eq!(past((200, 800), (40, 600), 355).fall(NOW), None);
}

#[test]
fn both_sides_need_30_requests_and_1000_steps() {
    assert!(past((30, 800), (30, 600), 1).fall(NOW).is_some());
    assert_eq!(past((29, 800), (30, 600), 1).fall(NOW), None);
    assert_eq!(past((30, 800), (29, 600), 1).fall(NOW), None);
    let mut short = past((200, 800), (0, 600), 1);
    for number in 0..32 {
        short.put(NOW - number * SECOND, 31, 30);
    }
    assert_eq!(short.fall(NOW), None, "992 steps");
    short.put(NOW, 8, 8);
    assert!(short.fall(NOW).is_some());
}

#[test]
fn the_fall_is_over_once_the_past_is_as_low() {
    let mut past = past((200, 800), (100, 600), 1);
    assert!(past.fall(NOW).is_some());
    let mut last = None;
    for minute in 1..90 {
        let now = NOW + minute * 60 * SECOND;
        for number in 0..40 {
            past.put(now - number * SECOND, 400, 599 + (number % 2 * 2) as u64);
        }
        if past.fall(now).is_some() {
            last = Some(minute);
        }
    }
    // After an hour the high part has left the past; long before, there is more of the low part.
    let last = last.unwrap();
    assert!(last > 10 && last < 60, "{last} minutes");
}

#[test]
fn what_ends_late_or_in_the_far_future_stays_bounded_and_in_order() {
    let mut past = Past::default();
    for number in 0..3_000_i64 {
        let ended = NOW + (number * 7_919 % 3_000) * 5 * SECOND;
        past.put(ended, 10, 10);
        past.put(ended, 10, 10);
    }
    assert_eq!(past.buckets.len(), MOST_BUCKETS);
    let numbers: Vec<i64> = past.buckets.iter().map(|(number, _)| *number).collect();
    assert!(numbers.is_sorted());
    past.put(i64::MAX, 1, 1);
    past.put(i64::MIN, 1, 1);
    assert_eq!(past.buckets.len(), MOST_BUCKETS);
    assert_eq!(past.fall(i64::MAX), None);
}

#[test]
fn steady_traffic_gives_no_false_alarm() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..200 {
        let mut past = Past::default();
        for _ in 0..400 {
            let steps = random.u64(20..60);
            let accepted = (steps as f64 * 3.0 * random.f64()) as u64;
            let ago = random.i64(0..3_800) * SECOND;
            past.put(NOW - ago, steps, accepted);
        }
        assert_eq!(past.fall(NOW), None);
    }
}
