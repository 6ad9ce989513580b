//! The REST endpoints. Each is a named query with variables from the URL.
//!
//! The rules are the rules of RESTified endpoints. An unknown variable is refused. A variable is decoded by
//! its type. The response is the value of `data` without the wrapper.

use std::borrow::Cow;

use hyper::StatusCode;
use percent_encoding::percent_decode_str;
use serde::Serialize;

use crate::datum::Datum;
use crate::entity::{Entity as _, LineItem, Product};
use crate::id::Id;
use crate::metrics::Endpoint;
use crate::select::{Column, Select, Test};
use crate::store::{Store, StoreError, Visitor};

/// Number of rows in a list without a limit.
pub(crate) const LIMIT_DEFAULT: u32 = 100;
/// Largest `offset` of a list. To skip more rows, a client filters by the last id.
pub(crate) const OFFSET_MAX: u32 = 1_000_000;

/// The endpoint of a path, with the undecoded id in the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    Products,
    Product(&'a str),
    LineItems,
    LineItem(&'a str),
}

/// A refusal, with its status, code and text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RestError {
    pub(crate) status: StatusCode,
    code: &'static str,
    message: String,
}

/// The body of a refusal.
#[derive(Serialize)]
struct Body<'a> {
    path: &'a str,
    error: &'a str,
    code: &'a str,
}

impl RestError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
        }
    }

    fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", message)
    }

    /// A refusal because no endpoint has this path.
    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "Endpoint not found")
    }

    /// The error as a JSON body.
    pub(crate) fn body(&self) -> Vec<u8> {
        let body = Body {
            path: "$",
            error: &self.message,
            code: self.code,
        };
        serde_json::to_vec(&body).expect("the keys are text")
    }
}

impl From<StoreError> for RestError {
    fn from(error: StoreError) -> Self {
        let status = match error {
            StoreError::Away | StoreError::Busy => StatusCode::SERVICE_UNAVAILABLE,
            StoreError::TooSlow(_) => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, "unexpected", error.to_string())
    }
}

impl<'a> Route<'a> {
    /// Reads the path after `/api/rest/`. A slash at the end makes no difference.
    pub(crate) fn of(path: &'a str) -> Option<Self> {
        // One slash only: `product//` is another path.
        let path = path.strip_suffix('/').unwrap_or(path);
        match path.split_once('/') {
            None if path == "product" => Some(Self::Products),
            None if path == "lineItem" => Some(Self::LineItems),
            Some(("product", id)) if is_segment(id) => Some(Self::Product(id)),
            Some(("lineItem", id)) if is_segment(id) => Some(Self::LineItem(id)),
            _ => None,
        }
    }

    /// The label of the endpoint in metrics.
    pub(crate) fn endpoint(&self) -> Endpoint {
        match self {
            Self::Products => Endpoint::Product,
            Self::Product(_) => Endpoint::ProductByPk,
            Self::LineItems => Endpoint::LineItem,
            Self::LineItem(_) => Endpoint::LineItemByPk,
        }
    }

    /// Executes the query and returns the JSON body.
    pub(crate) async fn answer(
        &self,
        parameters: &str,
        store: &Store,
        visitor: &Visitor,
        limit_max: u32,
    ) -> Result<Vec<u8>, RestError> {
        let select = self.select(parameters, limit_max)?;
        Ok(match self {
            Self::Products => wrapped("product", &store.rows::<Product>(select, visitor).await?),
            Self::LineItems => wrapped("lineItem", &store.rows::<LineItem>(select, visitor).await?),
            Self::Product(_) => wrapped(
                "product_by_pk",
                &store.one::<Product>(select, visitor).await?,
            ),
            Self::LineItem(_) => wrapped(
                "lineItem_by_pk",
                &store.one::<LineItem>(select, visitor).await?,
            ),
        })
    }

    /// The query with its variables.
    fn select(&self, parameters: &str, limit_max: u32) -> Result<Select, RestError> {
        let (table, filter) = match self {
            Self::Products => (Product::TABLE, "name"),
            Self::LineItems => (LineItem::TABLE, "product_id"),
            Self::Product(id) => return by_id(Product::TABLE, id, parameters),
            Self::LineItem(id) => return by_id(LineItem::TABLE, id, parameters),
        };
        // The default is also limited, because an operator may have configured a lower maximum.
        let mut select = Select::of(table, LIMIT_DEFAULT.min(limit_max));
        let mut seen: Vec<Cow<'_, str>> = Vec::new();
        for (name, value) in form_urlencoded::parse(parameters.as_bytes()) {
            if seen.contains(&name) {
                return Err(RestError::bad(format!(
                    "variable \"{name}\" is there twice; leave one out"
                )));
            }
            match &*name {
                // An empty value means null, like a missing variable.
                known if value.is_empty() && ["limit", "offset", filter].contains(&known) => {}
                "limit" => select.limit(bounded("limit", &value, limit_max)?),
                "offset" => select.skip(bounded("offset", &value, OFFSET_MAX)?),
                // Each list has one filter, so for line items `name` is an unknown variable.
                "name" if filter == "name" => {
                    let text = text("name", value)?;
                    select.test(Column::NAME, Test::Equal(Datum::Text(text)));
                }
                "product_id" if filter == "product_id" => {
                    let id = id("product_id", &value)?;
                    select.test(Column::PRODUCT_ID, Test::Equal(Datum::Id(id)));
                }
                _ => return Err(unexpected(&name)),
            }
            // At most the three known names, so a search costs nothing.
            seen.push(name);
        }
        Ok(select)
    }
}

fn is_segment(text: &str) -> bool {
    !text.is_empty() && !text.contains('/')
}

fn by_id(
    table: &'static crate::select::Table,
    segment: &str,
    parameters: &str,
) -> Result<Select, RestError> {
    // The path already contains `id`. There is no other variable.
    let mut names = form_urlencoded::parse(parameters.as_bytes()).map(|(name, _)| name);
    if let Some(name) = names.find(|name| name != "id") {
        return Err(unexpected(&name));
    }
    let segment = percent_decode_str(segment).decode_utf8();
    let segment = segment.map_err(|_| RestError::bad("variable \"id\": expected UTF-8"))?;
    Ok(Select::by_id(table, id("id", &segment)?))
}

fn unexpected(name: &str) -> RestError {
    RestError::bad(format!("Unexpected variable \"{name}\""))
}

fn id(name: &str, value: &str) -> Result<Id, RestError> {
    let id = value.parse::<Id>();
    id.map_err(|error| RestError::bad(format!("variable \"{name}\": {error}, found \"{value}\"")))
}

fn bounded(name: &str, value: &str, max: u32) -> Result<u32, RestError> {
    let number = value.parse::<u32>().ok().filter(|number| *number <= max);
    number.ok_or_else(|| {
        RestError::bad(format!(
            "variable \"{name}\": expected a whole number from 0 to {max}, found \"{value}\""
        ))
    })
}

/// Checks that both databases can store a text.
fn text(name: &str, value: Cow<'_, str>) -> Result<String, RestError> {
    if value.contains('\0') {
        let message = format!("variable \"{name}\": expected a text without U+0000");
        return Err(RestError::bad(message));
    }
    Ok(value.into_owned())
}

/// The JSON object `{"NAME":VALUE}`.
fn wrapped(name: &str, value: &impl Serialize) -> Vec<u8> {
    let mut body = format!("{{\"{name}\":").into_bytes();
    serde_json::to_writer(&mut body, value).expect("rows are JSON, and memory takes all");
    body.push(b'}');
    body
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::select::Dialect;

    const ID: &str = "0f0a6c1e-52d9-8b7e-9a41-0c6f7d2b8e10";

    fn asked(path: &str, parameters: &str) -> Result<String, String> {
        let route = Route::of(path).ok_or("no route")?;
        let select = route
            .select(parameters, 1_000)
            .map_err(|error| error.message)?;
        let statement = select.into_statement(Dialect::Sqlite);
        let (_, end) = statement.text.split_once(" FROM ").unwrap();
        Ok(format!("{end} {:?}", statement.data))
    }

    #[test]
    fn variables_come_from_the_url() {
        let all = "product ORDER BY id ASC LIMIT $1 OFFSET $2 [Count(100), Count(0)]";
        assert_eq!(asked("product", ""), Ok(all.to_owned()));
        assert_eq!(asked("product/", "limit=&offset="), Ok(all.to_owned()));
        let page = asked("lineItem", &format!("limit=5&offset=10&product_id={ID}")).unwrap();
        assert!(
            page.starts_with("line_item WHERE product_id = $1 ORDER BY id"),
            "{page}"
        );
        assert!(page.ends_with("Count(5), Count(10)]"), "{page}");
        let named = asked("product", "name=O%27Neil+%26+Co").unwrap();
        assert!(named.contains(r#"Text("O'Neil & Co")"#), "{named}");
        let one = asked(&format!("product/{ID}"), "id=ignored").unwrap();
        assert!(one.starts_with("product WHERE id = $1"), "{one}");
        assert_eq!(asked(&format!("product/%30{}", &ID[1..]), ""), Ok(one));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (path, parameters, message) in [
            ("product", "units=1", "Unexpected variable \"units\""),
            (
                "product",
                "product_id=1",
                "Unexpected variable \"product_id\"",
            ),
            ("lineItem", "name=x", "Unexpected variable \"name\""),
            (
                "product",
                "limit=1001",
                "variable \"limit\": expected a whole number from 0 to 1000, found \"1001\"",
            ),
            (
                "product",
                "offset=-1",
                "variable \"offset\": expected a whole number from 0 to 1000000, found \"-1\"",
            ),
            (
                "product",
                "name=a%00b",
                "variable \"name\": expected a text without U+0000",
            ),
            ("product/x", "limit=1", "Unexpected variable \"limit\""),
            (
                "product",
                "limit=1&limit=2",
                "variable \"limit\" is there twice; leave one out",
            ),
            ("product/%FF", "", "variable \"id\": expected UTF-8"),
            ("products", "", "no route"),
            ("product/a/b", "", "no route"),
            ("", "", "no route"),
        ] {
            assert_eq!(asked(path, parameters), Err(message.to_owned()), "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_url_is_a_question_or_a_mistake(path in "\\PC*", parameters in "\\PC*") {
            let _ = asked(&path, &parameters);
            let _ = asked(&format!("product/{path}"), &parameters);
        }
    }
}
