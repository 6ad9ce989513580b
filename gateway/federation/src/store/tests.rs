use super::*;

/// An object with the keys `k0` to `k<count>`, in the order of these numbers.
fn object(store: &mut Store, numbers: impl Iterator<Item = usize>) -> ObjectId {
    let members: Vec<String> = numbers.map(|it| format!("\"k{it}\":{it}")).collect();
    let text = format!("{{{}}}", members.join(","));
    match store.parse(text.as_bytes()) {
        Ok(Value::Object(object)) => object,
        other => panic!("an object was written, not {other:?}"),
    }
}

fn compared(store: &Store, work: impl FnOnce(&Store)) -> usize {
    let before = store.compared.get();
    work(store);
    store.compared.get() - before
}

/// A few comparisons for each member: one for its place in the index, one for each search, and some for keys
/// with equal hashes.
const FEW: usize = 5;

#[test]
fn members_in_another_order_are_found_in_linear_work() {
    for count in [10, 16, 17, 1_000, 4_000] {
        let mut store = Store::default();
        let object = object(&mut store, (0..count).rev());
        let work = compared(&store, |store| {
            let mut hint = Hint::default();
            for index in 0..count {
                let key = format!("k{index}");
                let found = store.get_hinted(object, key.as_bytes(), &mut hint);
                assert!(matches!(found, Some(Value::Number(_))), "{key}");
            }
            assert_eq!(store.get(object, b"other"), None);
        });
        // Small objects have a linear search.
        let each = if count <= 16 { count } else { FEW };
        assert!(work <= count * each, "{work} for {count}");
    }
}

#[test]
fn members_that_are_missing_cost_no_look_at_all_others() {
    let (mut store, count) = (Store::default(), 4_000);
    let object = object(&mut store, 0..count);
    let work = compared(&store, |store| {
        let mut hint = Hint::default();
        for index in 0..count {
            let key = format!("other{index}");
            assert_eq!(store.get_hinted(object, key.as_bytes(), &mut hint), None);
        }
    });
    assert!(work <= count * FEW, "{work}");
}

#[test]
fn large_objects_are_merged_in_linear_work() {
    let (mut store, count) = (Store::default(), 4_000);
    let target = object(&mut store, 0..count);
    let source = object(&mut store, (count / 2..count * 2).rev());
    let before = store.compared.get();
    store.merge(target, source, &|_| true);
    let work = store.compared.get() - before;
    assert!(work <= 2 * count * FEW, "{work}");
    // Both functions find the members that only the later object has.
    let work = compared(&store, |store| {
        let mut hint = Hint::default();
        for index in (0..count * 2).rev() {
            let key = format!("k{index}");
            let found = store.get_hinted(target, key.as_bytes(), &mut hint);
            assert_eq!(found, store.get(target, key.as_bytes()), "{key}");
            assert!(found.is_some(), "{key}");
        }
    });
    assert!(work <= 6 * count * FEW, "{work}");
}

#[test]
fn renamed_members_of_large_objects_are_found_by_their_new_name() {
    let (mut store, count) = (Store::default(), 1_000);
    let object = object(&mut store, 0..count);
    assert!(store.get(object, b"k999").is_some());
    let before = store.compared.get();
    for index in 0..count {
        let to = store.keep_text(format!("n{index}").as_bytes());
        store.rename(object, format!("k{index}").as_bytes(), to);
    }
    let work = store.compared.get() - before;
    assert!(work <= 4 * count * FEW, "{work}");
    for index in 0..count {
        let value = store.get(object, format!("n{index}").as_bytes());
        let Some(Value::Number(text)) = value else {
            panic!("n{index} is {value:?}");
        };
        assert_eq!(store.text(text), index.to_string().as_bytes());
        assert_eq!(store.get(object, format!("k{index}").as_bytes()), None);
    }
    // The new key exists already. The first of the two counts, as in small objects.
    let to = store.keep_text(b"n5");
    store.rename(object, b"n3", to);
    let Some(Value::Number(text)) = store.get(object, b"n5") else {
        panic!("n5 is gone");
    };
    assert_eq!(store.text(text), b"3");
}

#[test]
fn of_equal_keys_the_first_counts_in_large_objects_too() {
    let mut store = Store::default();
    let many: String = (0..50).map(|it| format!(",\"k{it}\":0")).collect();
    let text = format!("{{\"x\":1{many},\"x\":2}}");
    let Ok(Value::Object(object)) = store.parse(text.as_bytes()) else {
        panic!("an object was written");
    };
    let Some(Value::Number(text)) = store.get(object, b"x") else {
        panic!("x is there");
    };
    assert_eq!(store.text(text), b"1");
}

fn parsed(store: &mut Store, text: &str) -> Value {
    store.parse(text.as_bytes()).unwrap()
}

fn written(store: &Store, value: Value) -> String {
    let mut out = Vec::new();
    store.write(value, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_key_that_is_given_twice_is_written_once() {
    let mut store = Store::default();
    let small = parsed(
        &mut store,
        r#"{"a":1,"b":[{"x":1,"x":2}],"a":3,"\u0061":4}"#,
    );
    assert_eq!(written(&store, small), r#"{"a":1,"b":[{"x":1}]}"#);
    let many: String = (0..50).map(|it| format!(",\"k{it}\":0")).collect();
    let large = parsed(&mut store, &format!("{{\"x\":1{many},\"x\":2}}"));
    assert_eq!(written(&store, large), format!("{{\"x\":1{many}}}"));
}

#[test]
fn what_two_answers_say_of_one_key_is_written_once() {
    let mut store = Store::default();
    let first = parsed(&mut store, r#"{"a":1,"m":{"k":1}}"#);
    let second = parsed(&mut store, r#"{"a":2,"m":{"k":2,"l":3},"z":0}"#);
    let third = parsed(&mut store, r#"{"z":1,"y":0}"#);
    let [
        Value::Object(target),
        Value::Object(other),
        Value::Object(third),
    ] = [first, second, third]
    else {
        panic!("three objects were written");
    };
    store.merge(target, other, &|_| true);
    // Merged on two paths, so that its members are visited twice.
    store.merge(other, third, &|_| true);
    store.merge(target, third, &|_| true);
    assert_eq!(
        written(&store, first),
        r#"{"a":2,"m":{"k":2,"l":3},"z":1,"y":0}"#
    );
}

#[test]
fn what_does_not_fit_leaves_nothing_behind() {
    let mut store = Store::bounded(1_000);
    let kept = store.parse(b"[1,2,3]").unwrap();
    // The text is small, but each value takes many times its two bytes.
    let many = format!("[{}0]", "0,".repeat(200));
    assert!(store.parse(many.as_bytes()).is_err());
    assert!(store.is_full());
    let long = format!("\"{}\"", "x".repeat(2_000));
    assert!(store.parse(long.as_bytes()).is_err());
    let mut out = Vec::new();
    store.write(kept, &mut out);
    assert_eq!(out, b"[1,2,3]");
    assert_eq!(store.raw().len(), out.len());
    assert!(store.parse(b"[4]").is_ok());
}

#[test]
fn an_answer_that_is_malformed_is_not_one_that_does_not_fit() {
    let mut store = Store::bounded(1_000);
    assert!(store.parse(b"[1,").is_err());
    assert!(!store.is_full());
}

#[test]
fn another_field_under_the_same_key_replaces_what_was_there() {
    let mut store = Store::default();
    let first = parsed(&mut store, r#"{"a":1,"o":{"x":1},"b":1}"#);
    let second = parsed(&mut store, r#"{"a":null,"o":{"y":2},"b":null}"#);
    let (Value::Object(target), Value::Object(source)) = (first, second) else {
        panic!("two objects were written");
    };
    let replaced = [b"a".to_vec(), b"o".to_vec()];
    store.merge_replacing(target, source, &replaced, &|_| true);
    // The earlier value does not stay although the later one is null, and they are not merged.
    assert_eq!(written(&store, first), r#"{"a":null,"o":{"y":2},"b":1}"#);
}

#[test]
fn what_is_merged_into_a_copy_is_not_in_the_original() {
    let mut store = Store::default();
    let received = parsed(&mut store, r#"{"id":1,"m":{"k":[{"l":1},2]}}"#);
    let added = parsed(&mut store, r#"{"m":{"k":[{"n":2},3],"x":0}}"#);
    let (Value::Object(original), Value::Object(added)) = (received, added) else {
        panic!("two objects were written");
    };
    let copy = store.copy(original).unwrap();
    store.merge(copy, added, &|_| true);
    assert_eq!(
        written(&store, Value::Object(copy)),
        r#"{"id":1,"m":{"k":[{"l":1,"n":2},3],"x":0}}"#
    );
    assert_eq!(
        written(&store, received),
        r#"{"id":1,"m":{"k":[{"l":1},2]}}"#
    );
}

#[test]
fn a_copy_takes_room_as_an_answer_does() {
    let body = format!("{{\"a\":[{}0]}}", "0,".repeat(99));
    let mut store = Store::bounded(3 * 100 * VALUE_BYTES);
    let Ok(Value::Object(received)) = store.parse(body.as_bytes()) else {
        panic!("an object was written");
    };
    let mut copies = 0;
    while store.copy(received).is_some() {
        copies += 1;
        assert!(copies < 10, "copies have no bound");
    }
    assert!(copies > 0 && store.is_full());
    // No element is left open, and the earlier data is unchanged.
    assert_eq!(store.begin(), (0, 0));
    assert_eq!(written(&store, Value::Object(received)), body);
}
