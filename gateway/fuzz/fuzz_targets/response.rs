//! Checks the client's response for any subgraph responses. It is JSON of exactly the requested shape, in the
//! requested order, with null only at places that allow null.
//!
//! The first byte chooses the operation. The rest is split at bytes that no text contains. The pieces are the
//! responses, in the order of the requests.
#![no_main]

use std::cell::RefCell;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};

use gateway_federation::{
    ErrorPolicies, ErrorPolicy, Fetch, OperationOptions, Operations, Prepared, SubgraphAnswer,
    SubgraphRequest, Supergraph,
};
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The required shape of a value.
enum Shape {
    Int,
    Float,
    Text,
    Id,
    /// A string out of this list.
    OneOf(&'static [&'static str]),
    List(&'static Place),
    Object(&'static [(&'static str, Place)]),
    /// An object with one of these shapes.
    AnyOf(&'static [Shape]),
}

/// A shape, and true if null is allowed instead.
struct Place(bool, Shape);

const fn maybe(shape: Shape) -> Place {
    Place(true, shape)
}

const fn always(shape: Shape) -> Place {
    Place(false, shape)
}

static PLACES: &str = "{ places { id n: name climate near { id rating } \
    reviews { stars comment place { id name } } } }";
static FOUND: &str = "{ found { __typename ... on Place { name climate rating } \
    ... on Guide { phone name } } named { name __typename } }";
static MEDIA: &str = "{ tagged { id tag title ... on Film { minutes } } media { tag id } }";
static CHANGE: &str =
    "mutation { rename(id: 1, name: \"x\") { id name } review(id: 1, stars: 2) { stars comment } }";

static NEAR: Place = maybe(Shape::Object(&[
    ("id", always(Shape::Id)),
    ("rating", maybe(Shape::Float)),
]));
static REVIEW: Place = always(Shape::Object(&[
    ("stars", always(Shape::Int)),
    ("comment", maybe(Shape::Text)),
    (
        "place",
        maybe(Shape::Object(&[
            ("id", always(Shape::Id)),
            ("name", always(Shape::Text)),
        ])),
    ),
]));
static PLACE: Place = always(Shape::Object(&[
    ("id", always(Shape::Id)),
    ("n", always(Shape::Text)),
    ("climate", maybe(Shape::OneOf(&["\"MILD\""]))),
    ("near", maybe(Shape::List(&NEAR))),
    ("reviews", always(Shape::List(&REVIEW))),
]));
static FOUND_ONE: Place = maybe(Shape::AnyOf(&[
    Shape::Object(&[
        ("__typename", always(Shape::OneOf(&["\"Place\""]))),
        ("name", always(Shape::Text)),
        ("climate", maybe(Shape::OneOf(&["\"MILD\""]))),
        ("rating", maybe(Shape::Float)),
    ]),
    Shape::Object(&[
        ("__typename", always(Shape::OneOf(&["\"Guide\""]))),
        ("phone", maybe(Shape::Text)),
        ("name", always(Shape::Text)),
    ]),
    // A type outside of the schema.
    Shape::Object(&[("__typename", always(Shape::Text))]),
]));
static NAMED: Place = maybe(Shape::Object(&[
    ("name", always(Shape::Text)),
    ("__typename", always(Shape::Text)),
]));
static TAGGED: Place = maybe(Shape::AnyOf(&[
    Shape::Object(&[
        ("id", always(Shape::Id)),
        ("tag", maybe(Shape::Text)),
        ("title", maybe(Shape::Text)),
        ("minutes", maybe(Shape::Int)),
    ]),
    Shape::Object(&[
        ("id", always(Shape::Id)),
        ("tag", maybe(Shape::Text)),
        ("title", maybe(Shape::Text)),
    ]),
]));
static MEDIUM: Place = maybe(Shape::Object(&[
    ("tag", maybe(Shape::Text)),
    ("id", always(Shape::Id)),
]));
static OPERATIONS: [(&str, Place); 4] = [
    (
        PLACES,
        maybe(Shape::Object(&[("places", maybe(Shape::List(&PLACE)))])),
    ),
    (
        FOUND,
        maybe(Shape::Object(&[
            ("found", maybe(Shape::List(&FOUND_ONE))),
            ("named", maybe(Shape::List(&NAMED))),
        ])),
    ),
    (
        MEDIA,
        maybe(Shape::Object(&[
            ("tagged", maybe(Shape::List(&TAGGED))),
            ("media", maybe(Shape::List(&MEDIUM))),
        ])),
    ),
    (
        CHANGE,
        maybe(Shape::Object(&[
            (
                "rename",
                maybe(Shape::Object(&[
                    ("id", always(Shape::Id)),
                    ("name", always(Shape::Text)),
                ])),
            ),
            (
                "review",
                maybe(Shape::Object(&[
                    ("stars", always(Shape::Int)),
                    ("comment", maybe(Shape::Text)),
                ])),
            ),
        ])),
    ),
];

/// An object, its members in order.
struct Members<'a>(Vec<(&'a str, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

fn fits(place: &Place, value: &str) -> bool {
    if value == "null" {
        return place.0;
    }
    let is_text = value.starts_with('"');
    let is_number = value.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    match &place.1 {
        Shape::Int => value.parse::<i32>().is_ok() || value.parse::<f64>().is_ok_and(is_whole),
        Shape::Float => is_number,
        Shape::Text => is_text,
        Shape::Id => is_text || is_number,
        Shape::OneOf(texts) => texts.contains(&value),
        Shape::List(item) => serde_json::from_str::<Vec<&RawValue>>(value)
            .is_ok_and(|items| items.iter().all(|value| fits(item, value.get()))),
        Shape::Object(wanted) => serde_json::from_str::<Members<'_>>(value).is_ok_and(|found| {
            found.0.len() == wanted.len()
                && found
                    .0
                    .iter()
                    .zip(*wanted)
                    .all(|((key, value), (name, place))| key == name && fits(place, value.get()))
        }),
        Shape::AnyOf(shapes) => shapes.iter().any(|shape| fits_shape(shape, value)),
    }
}

fn fits_shape(shape: &Shape, value: &str) -> bool {
    let Shape::Object(wanted) = shape else {
        return false;
    };
    fits(&Place(false, Shape::Object(wanted)), value)
}

/// True if the number is an integer. `1.0` and `1e3` are integers, too.
fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= 2_147_483_648.0
}

struct Answers<'a>(RefCell<Box<dyn Iterator<Item = &'a [u8]> + 'a>>);

impl Fetch for Answers<'_> {
    async fn fetch(&self, _: SubgraphRequest<'_>) -> SubgraphAnswer {
        let answer = self.0.borrow_mut().next().unwrap_or(b"{\"data\":null}");
        SubgraphAnswer::from_body(answer.to_vec())
    }
}

type Ready = (Vec<Arc<Prepared>>, ErrorPolicies);

static READY: LazyLock<Ready> = LazyLock::new(|| {
    let sdl = include_str!("../../federation/tests/supergraph.graphql");
    let supergraph = Arc::new(Supergraph::parse(sdl).unwrap());
    let operations = Operations::new(Arc::clone(&supergraph), OperationOptions::default());
    let prepared = OPERATIONS
        .iter()
        .map(|(query, _)| operations.prepare(query, None).unwrap());
    let policies = ErrorPolicies::new(&supergraph, |_| ErrorPolicy::Include);
    (prepared.collect(), policies)
});

fuzz_target!(|bytes: &[u8]| {
    let Some((first, answers)) = bytes.split_first() else {
        return;
    };
    let chosen = usize::from(*first) % OPERATIONS.len();
    let (operations, policies) = &*READY;
    let prepared = &operations[chosen];
    let variables = prepared.coerce(None).unwrap();
    let cut = answers.split(|byte| *byte == 0xff);
    let fetch = Answers(RefCell::new(Box::new(cut)));
    let mut future = pin!(prepared.execute(&variables, &fetch, policies));
    let executed = loop {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(executed) = future.as_mut().poll(&mut context) {
            break executed;
        }
    };
    let body = executed.body();
    serde_json::from_slice::<IgnoredAny>(body).expect("the response is JSON");
    let data = std::str::from_utf8(executed.data()).expect("the response is text");
    let (_, place) = &OPERATIONS[chosen];
    assert!(fits(place, data), "{data} is not what was asked");
    let errors: Vec<IgnoredAny> = executed
        .errors()
        .map(|errors| serde_json::from_slice(errors).expect("the errors are a list"))
        .unwrap_or_default();
    assert_eq!(errors.len(), executed.error_count());
});
