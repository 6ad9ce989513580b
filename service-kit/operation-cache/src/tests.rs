use super::*;

const LARGE: Bounds = Bounds {
    entries: 8,
    bytes: 1 << 20,
};

fn key(query: &str) -> Key<'_> {
    Key::new(query, None)
}

fn make(outcome: u32) -> impl FnOnce() -> (u32, Keep) {
    weighing(outcome, 10)
}

fn weighing(outcome: u32, bytes: usize) -> impl FnOnce() -> (u32, Keep) {
    move || (outcome, Keep::Yes { bytes })
}

#[test]
fn the_same_text_name_and_variant_are_made_once() {
    let cache = OperationCache::new(LARGE);
    assert_eq!(cache.get_or_make(key("{ a }"), make(1)), 1);
    assert_eq!(cache.get_or_make(key("{ a }"), make(2)), 1);
    let named = Key::new("{ a }", Some("a"));
    assert_eq!(cache.get_or_make(named, make(3)), 3);
    let variant = Key {
        variant: "b",
        ..key("{ a }")
    };
    assert_eq!(cache.get_or_make(variant, make(4)), 4);
    assert_eq!(cache.get(key("{ a }")), Some(1));
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.entries), (2, 3, 3));
}

#[test]
fn what_was_used_outlives_what_was_not() {
    let cache = OperationCache::new(Bounds {
        entries: 2,
        ..LARGE
    });
    cache.get_or_make(key("used"), make(1));
    cache.get_or_make(key("idle"), make(2));
    assert_eq!(cache.get(key("used")), Some(1));
    cache.get_or_make(key("new"), make(3));
    assert_eq!(cache.get(key("used")), Some(1));
    assert_eq!(cache.get(key("idle")), None);
    assert_eq!(cache.get(key("new")), Some(3));
    assert_eq!(cache.stats().entries, 2);
}

#[test]
fn what_may_not_be_kept_or_has_a_long_key_is_made_again() {
    let cache = OperationCache::new(LARGE);
    cache.get_or_make(key("{ a }"), || (1, Keep::No));
    assert_eq!(cache.get(key("{ a }")), None);
    let long = "a".repeat(TEXT_BYTES_MAX + 1);
    let name = "a".repeat(NAME_BYTES_MAX + 1);
    let variant = Key {
        variant: &name,
        ..key("{ a }")
    };
    for key in [key(&long), Key::new("{ a }", Some(&name)), variant] {
        assert_eq!(cache.get_or_make(key, make(4)), 4);
        assert_eq!(cache.get(key), None);
    }
    assert_eq!(cache.stats().bytes, 0);
}

#[test]
fn a_failure_to_make_keeps_nothing() {
    let cache = OperationCache::<u32>::new(LARGE);
    let failed = cache.get_or_try_make(key("a"), || Err("no"));
    assert_eq!(failed, Err("no"));
    assert_eq!(cache.stats(), CacheStats::default());
}

#[test]
fn heavy_outcomes_take_the_room_of_many() {
    let cache = OperationCache::new(Bounds {
        entries: 100,
        bytes: 10_000,
    });
    for number in 0..50 {
        cache.get_or_make(key(&number.to_string()), weighing(number, 1_000));
        assert!(cache.stats().bytes <= 10_000, "{:?}", cache.stats());
    }
    let before = cache.stats();
    assert!((2..10).contains(&before.entries), "{before:?}");
    // An outcome larger than the whole cache removes no other entries.
    cache.get_or_make(key("giant"), weighing(0, 10_001));
    assert_eq!(cache.get(key("giant")), None);
    assert_eq!(cache.stats().entries, before.entries);
    // An outcome that needs the whole cache removes all other entries.
    cache.get_or_make(key("large"), weighing(7, 9_000));
    assert_eq!(cache.get(key("large")), Some(7));
    assert_eq!(cache.stats().entries, 1);
}

#[test]
fn what_is_kept_for_a_time_is_made_again_after_it() {
    let cache = OperationCache::new(LARGE);
    let making = |outcome, time| move || (outcome, Keep::For { bytes: 1, time });
    cache.get_or_make(key("long"), making(1, Duration::from_secs(3600)));
    assert_eq!(cache.get(key("long")), Some(1));
    cache.get_or_make(key("short"), making(1, Duration::ZERO));
    assert_eq!(cache.get(key("short")), None);
    assert_eq!(cache.get_or_make(key("short"), make(2)), 2);
    assert_eq!(cache.get(key("short")), Some(2));
    assert_eq!(cache.stats().entries, 2);
}

#[test]
fn places_are_used_again() {
    let cache = OperationCache::new(Bounds {
        entries: 3,
        bytes: 2_000,
    });
    for round in 0..100_u32 {
        let bytes = (round as usize * 37) % 900;
        let text = (round % 7).to_string();
        let outcome = cache.get_or_make(key(&text), weighing(round % 7, bytes));
        assert_eq!(outcome, round % 7);
        assert!(cache.stats().entries <= 3 && cache.stats().bytes <= 2_000);
    }
}
