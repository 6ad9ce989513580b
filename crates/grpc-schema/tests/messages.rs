//! Messages between JSON and bytes, by compiled files.

use grpc_schema::{CallSchema, Method};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use serde_json::json;

const FILE: &str = r#"
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
service Orders {
  rpc Place (Order) returns (Receipt);
  rpc Watch (stream Order) returns (stream Receipt);
}
enum Size { SIZE_NONE = 0; SMALL = 1; }
message Item { string name = 1; double price = 2; int64 stock_left = 3; }
message Order {
  int32 count = 1;
  bool is_gift = 2;
  repeated Item items = 3;
  map<string, uint32> notes = 4;
  bytes raw = 5;
  Size size = 6;
  google.protobuf.Timestamp due_at = 7;
  oneof payment { string card = 8; string cash = 9; }
}
message Receipt { string id = 1; Order order = 2; uint64 total = 3; }
"#;

struct One;

impl FileResolver for One {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match name {
            "shop.proto" => File::from_source(name, FILE),
            _ => Err(protox::Error::file_not_found(name)),
        }
    }
}

fn schema() -> CallSchema {
    let mut resolver = ChainFileResolver::new();
    resolver.add(One);
    resolver.add(GoogleFileResolver::new());
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true);
    compiler.open_file("shop.proto").expect("a right file");
    CallSchema::read(&compiler.encode_file_descriptor_set()).expect("a right set")
}

fn place() -> Method {
    schema().method("shop.Orders/Place").expect("a method")
}

#[test]
fn texts_get_the_types_of_their_fields() {
    let of = |json: &str| place().encode(json).map_err(|error| error.to_string());
    assert_eq!(of(r#"{"count":"7"}"#), of(r#"{"count":7}"#));
    assert_eq!(of(r#"{"count":"7"}"#), Ok(vec![0x08, 7]));
    assert_eq!(of(r#"{"isGift":"true"}"#), Ok(vec![0x10, 1]));
    assert_eq!(
        of(r#"{"is_gift":true,"count":1e2}"#),
        Ok(vec![0x08, 100, 0x10, 1])
    );
    assert_eq!(of(r#"{"size":"SMALL"}"#), of(r#"{"size":"1"}"#));
    assert_eq!(of(r#"{"raw":"aGk"}"#), Ok(b"\x2a\x02hi".to_vec()));
    assert_eq!(of("{}"), Ok(Vec::new()));
}

#[test]
fn what_does_not_fit_is_named_by_its_path() {
    for (json, expected) in [
        (
            r#"{"count":"x"}"#,
            "`count`: expected a whole number of 32 bits, found the text `x`",
        ),
        (
            r#"{"count":3000000000}"#,
            "`count`: expected a whole number of 32 bits",
        ),
        (r#"{"count":1.5}"#, "`count`: expected a whole number"),
        (
            r#"{"items":[{},{"price":"a"}]}"#,
            "`items.1.price`: expected a number, found the text `a`",
        ),
        (r#"{"items":{}}"#, "`items`: expected a list"),
        (
            r#"{"notes":{"a":-1}}"#,
            "`notes.a`: expected a whole number of 32 bits without a sign",
        ),
        (
            r#"{"items":[{"nam":"a"}]}"#,
            "`items.0.nam`: `shop.Item` has no field `nam`. Its fields are `name`, `price`, `stock_left`",
        ),
        (
            r#"{"size":"BIG"}"#,
            "`size`: expected a value of `shop.Size` (`SIZE_NONE`, `SMALL`), found the text `BIG`",
        ),
        (r#"{"raw":"?"}"#, "`raw`: expected bytes in base64"),
        (
            r#"{"isGift":"yes"}"#,
            "`isGift`: expected true or false, found the text `yes`",
        ),
        (
            r#"{"dueAt":"soon"}"#,
            "`dueAt`: expected a value of `google.protobuf.Timestamp`",
        ),
        (
            r#"{"items":[{"name":5}]}"#,
            "`items.0.name`: expected a text, found 5",
        ),
        ("[]", "expected a message `shop.Order`, found []"),
        ("{", "expected a message in JSON"),
    ] {
        let error = place().encode(json).expect_err(json).to_string();
        assert!(error.contains(expected), "{json}: {error}");
    }
}

#[test]
fn places_are_left_to_the_load() {
    let method = place();
    let open = r#"{"count":"{{n}}","items":[{"price":"{{p}}"}],"size":"{{s}}","dueAt":"{{t}}"}"#;
    assert_eq!(method.check(open), Ok(()));
    assert!(method.encode(open).is_err(), "no place may be left");
    let wrong = method
        .check(r#"{"cnt":"{{n}}"}"#)
        .expect_err("a wrong name");
    assert_eq!(wrong.path, "cnt");
}

#[test]
fn answers_are_json_and_their_fields_are_compared() {
    let method = place();
    // A receipt with the id `a`, an order with the count 2, and a total beyond 53 bits.
    let bytes = b"\x0a\x01a\x12\x02\x08\x02\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    let answer = method.answer(bytes).expect("a receipt");
    assert_eq!(answer["id"], json!("a"));
    assert_eq!(answer["order"]["count"], json!(2));
    assert_eq!(answer["order"]["isGift"], json!(false), "a default value");
    assert_eq!(answer["total"], json!("18446744073709551615"));
    let differs = |fields: &str| {
        let expected = method.expected(fields).expect(fields);
        expected
            .difference(&answer)
            .map(|it| (it.pointer, it.expected, it.found))
    };
    assert_eq!(differs(r#"{"order":{"count":"2","is_gift":false}}"#), None);
    assert_eq!(differs(r#"{"total":18446744073709551615}"#), None);
    assert_eq!(differs(r#"{"order":{"items":[]}}"#), None);
    let found = differs(r#"{"id":"a","order":{"count":3}}"#);
    assert_eq!(
        found,
        Some(("/order/count".to_owned(), "3".to_owned(), "2".to_owned()))
    );
    let error = method
        .expected(r#"{"order":{"cnt":3}}"#)
        .expect_err("a wrong name");
    assert_eq!(error.path, "order.cnt");
    assert!(
        method.answer(b"\x0a\x05a").is_err(),
        "a message that is cut"
    );
}

#[test]
fn pointers_get_the_names_of_json() {
    let method = place();
    assert_eq!(
        method.pointer("/order/is_gift"),
        Ok("/order/isGift".to_owned())
    );
    assert_eq!(
        method.pointer("/order/items/0/stock_left"),
        Ok("/order/items/0/stockLeft".to_owned())
    );
    assert_eq!(
        method.pointer("/order/notes/a_b"),
        Ok("/order/notes/a_b".to_owned())
    );
    let error = method.pointer("/order/gift").expect_err("no field");
    assert!(
        error.contains("`shop.Order` has no field `gift`"),
        "{error}"
    );
    assert!(method.pointer("/id/x").is_err());
}

#[test]
fn invented_messages_fit() {
    let method = schema().method("/shop.Orders/Watch").expect("a method");
    assert!(method.takes_several() && method.answers_several());
    let invented = method.invented();
    assert_eq!(invented["items"][0]["price"], json!(1.5));
    assert!(invented.get("cash").is_none(), "one field of a group");
    assert!(method.encode(&invented.to_string()).is_ok(), "{invented}");
}

#[test]
fn a_wrong_method_is_told_the_methods() {
    let error = schema().method("Orders/Place").expect_err("no method");
    assert!(
        error.contains("`shop.Orders/Place`, `shop.Orders/Watch`"),
        "{error}"
    );
    assert!(CallSchema::read(b"syntax = 3").is_err());
}
