//! The data of both schemas, computed in one place.
//!
//! All values are computed from the arguments. So a response is equal in every run, and its size depends only
//! on the query. Only the counter of the mutation has state.
//!
//! Absent on purpose: a database. These servers measure their GraphQL and HTTP libraries.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The id in the response to `{ test { id } }`.
pub const TEST_ID: &str = "1";

/// Number of items, and maximum length of the list of one `items` field.
pub const ITEMS_MAX: i32 = 10_000;

/// Maximum number of items in all `items` fields of one request.
///
/// Without it, one small query could repeat `items(count: 10000)` under many aliases.
pub const ITEMS_PER_REQUEST_MAX: u32 = 20_000;

/// Maximum number of fields in the objects of all `items` fields of one request. A worker is busy while it
/// builds a response.
pub const FIELDS_PER_REQUEST_MAX: u64 = 60_000;

/// Maximum bytes of the names of these fields.
pub const NAME_BYTES_PER_REQUEST_MAX: u64 = 2 << 20;

/// Bytes of the client's texts that `echo` and `fail` may return in one request. The text that crosses the
/// limit is the last one. So a single text is always returned, even if it fills the whole body.
pub const TEXT_BYTES_PER_REQUEST_MAX: usize = 1 << 20;

/// The length of the list without an argument. The schemas repeat it as a default.
pub const COUNT: i32 = 10;

/// The amount that the mutation adds without an argument. The schemas repeat it as a default.
pub const AMOUNT: i32 = 1;

/// The whole number of a variable like `1.0`, which some clients write for an `Int`.
///
/// JSON has one kind of numbers, so `1.0` is the number 1. No argument of the schemas takes a list or an
/// object, so values within them need no conversion.
#[must_use]
pub fn whole(number: f64) -> Option<i32> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "compared with the number afterwards"
    )]
    let whole = number as i32;
    (f64::from(whole) == number).then_some(whole)
}

/// The message of `fail` without an argument.
pub const FAILURE: &str = "this field always fails";

/// The reason why a field has no value. The text is the message in the response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldFailure {
    /// `count` of `items` is outside `0..=ITEMS_MAX`.
    #[error("`count` must be between 0 and {ITEMS_MAX}, found {0}")]
    CountOutOfRange(i32),
    /// The request selects more items than the limit.
    #[error("a request may return at most {ITEMS_PER_REQUEST_MAX} items; ask for fewer")]
    TooManyItems,
    /// The objects of the lists would have too many fields.
    #[error(
        "the items of a request may have {FIELDS_PER_REQUEST_MAX} fields together, found {0}; ask for \
         fewer"
    )]
    TooManyFields(u64),
    /// The names of these fields would be too long in total.
    #[error(
        "the names of fields in items may have {NAME_BYTES_PER_REQUEST_MAX} bytes together, found {0}; \
         ask for fewer, or by shorter aliases"
    )]
    TooLongNames(u64),
    /// The response would repeat too many bytes of the client's texts.
    #[error(
        "a request gets back at most {TEXT_BYTES_PER_REQUEST_MAX} bytes of its own texts, found \
         {0} before this one; ask for fewer"
    )]
    TooMuchText(usize),
    /// The sum does not fit into the counter.
    #[error("the counter cannot go beyond {0}; add less")]
    CounterOverflow(i32),
    /// A field that always fails, with its message.
    #[error("{0}")]
    Asked(String),
}

impl FieldFailure {
    /// The failure of `fail(message:)`, with a default message.
    #[must_use]
    pub fn asked(message: Option<String>) -> Self {
        Self::Asked(message.unwrap_or_else(|| FAILURE.to_owned()))
    }
}

/// One entry of the list. All its values follow from its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// The number, from 1 to [`ITEMS_MAX`].
    number: i32,
}

impl Item {
    /// The item with this id, if it exists.
    #[must_use]
    pub fn with_id(id: &str) -> Option<Self> {
        let number: i32 = id.parse().ok()?;
        // "007" and "+7" parse as numbers but are not ids of items.
        ((1..=ITEMS_MAX).contains(&number) && number.to_string() == id).then_some(Self { number })
    }

    /// The id: the number as text.
    #[must_use]
    pub fn id(self) -> String {
        self.number.to_string()
    }

    /// The name: `item` and the number.
    #[must_use]
    pub fn name(self) -> String {
        format!("item {}", self.number)
    }

    /// Pieces in stock, from 0 to 99.
    #[must_use]
    pub fn quantity(self) -> i32 {
        // 7 and 100 have no common factor, so all quantities occur.
        self.number * 7 % 100
    }

    /// True if at least one piece is in stock.
    #[must_use]
    pub fn in_stock(self) -> bool {
        self.quantity() > 0
    }

    /// A remark. Only every third item has one.
    #[must_use]
    pub fn note(self) -> Option<String> {
        (self.number % 3 == 0).then(|| format!("item {} is one of every third", self.number))
    }
}

/// The selection in each object of a list, with its fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// Number of selected fields.
    pub fields: u64,
    /// Bytes of their names in the response.
    pub name_bytes: u64,
}

impl<'a> FromIterator<&'a str> for Selected {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        names
            .into_iter()
            .fold(Self::default(), |so_far, name| Self {
                fields: so_far.fields + 1,
                name_bytes: so_far.name_bytes + name.len() as u64,
            })
    }
}

/// The remaining allowance of one request.
#[derive(Debug)]
pub struct Allowance {
    items: AtomicU32,
    /// Fields used by lists of this request.
    fields: AtomicU64,
    /// Bytes of field names used by lists of this request.
    name_bytes: AtomicU64,
    /// Bytes of client texts returned by this request.
    text_bytes: AtomicUsize,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            items: AtomicU32::new(ITEMS_PER_REQUEST_MAX),
            fields: AtomicU64::new(0),
            name_bytes: AtomicU64::new(0),
            text_bytes: AtomicUsize::new(0),
        }
    }
}

impl Allowance {
    /// The first `count` items, with the selected fields. Null counts as [`COUNT`].
    ///
    /// # Errors
    /// Fails if `count` is outside `0..=ITEMS_MAX`, or if the request has used up its items, their fields or
    /// the bytes of their names.
    pub fn items(
        &self,
        count: Option<i32>,
        selected: Selected,
    ) -> Result<impl ExactSizeIterator<Item = Item>, FieldFailure> {
        let count = count.unwrap_or(COUNT);
        let wanted = u32::try_from(count)
            .ok()
            .filter(|_| count <= ITEMS_MAX)
            .ok_or(FieldFailure::CountOutOfRange(count))?;
        // One request runs on one thread at a time, so load and store cannot be interleaved.
        let left = self.items.load(Ordering::Relaxed);
        // A refused list costs no items, so a smaller list may still follow.
        let left = left.checked_sub(wanted).ok_or(FieldFailure::TooManyItems)?;
        let times = u64::from(wanted);
        let fields = times
            .saturating_mul(selected.fields)
            .saturating_add(self.fields.load(Ordering::Relaxed));
        if fields > FIELDS_PER_REQUEST_MAX {
            return Err(FieldFailure::TooManyFields(fields));
        }
        let bytes = times
            .saturating_mul(selected.name_bytes)
            .saturating_add(self.name_bytes.load(Ordering::Relaxed));
        if bytes > NAME_BYTES_PER_REQUEST_MAX {
            return Err(FieldFailure::TooLongNames(bytes));
        }
        self.items.store(left, Ordering::Relaxed);
        self.fields.store(fields, Ordering::Relaxed);
        self.name_bytes.store(bytes, Ordering::Relaxed);
        Ok((0..count).map(|before| Item { number: before + 1 }))
    }
}

impl Allowance {
    /// Returns a text of the client.
    ///
    /// # Errors
    /// Fails if the request has already received [`TEXT_BYTES_PER_REQUEST_MAX`] bytes of its texts.
    pub fn text(&self, text: String) -> Result<String, FieldFailure> {
        let before = self.text_bytes.load(Ordering::Relaxed);
        if before >= TEXT_BYTES_PER_REQUEST_MAX {
            return Err(FieldFailure::TooMuchText(before));
        }
        let after = before.saturating_add(text.len());
        self.text_bytes.store(after, Ordering::Relaxed);
        Ok(text)
    }

    /// The failure of `fail(message:)`, within the limit for texts.
    #[must_use]
    pub fn failure(&self, message: Option<String>) -> FieldFailure {
        let message = message.map(|message| self.text(message)).transpose();
        message.map_or_else(|refused| refused, FieldFailure::asked)
    }
}

/// The number that the mutation changes. All workers of a server share it.
#[derive(Debug, Default)]
pub struct Counter(AtomicI32);

impl Counter {
    /// The current sum, initially 0.
    #[must_use]
    pub fn total(&self) -> i32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds an amount and returns the new sum. Null counts as [`AMOUNT`].
    ///
    /// # Errors
    /// Fails if the sum would leave the range of a GraphQL Int. The counter then keeps its value.
    pub fn add(&self, amount: Option<i32>) -> Result<i32, FieldFailure> {
        let amount = amount.unwrap_or(AMOUNT);
        let sum = |total: i32| total.checked_add(amount);
        match self
            .0
            // Compare and exchange, because a plain addition would wrap around at the end of a GraphQL Int.
            // Relaxed, because the sum orders no other memory.
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum)
        {
            // `sum` has just checked that it fits.
            Ok(before) => Ok(before + amount),
            // The sign of the amount determines the exceeded limit.
            Err(_) if amount < 0 => Err(FieldFailure::CounterOverflow(i32::MIN)),
            Err(_) => Err(FieldFailure::CounterOverflow(i32::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_number_of_32_bits_is_one() {
        assert_eq!(whole(1.0), Some(1));
        assert_eq!(whole(-2_147_483_648.0), Some(i32::MIN));
        for other in [1.5, 2_147_483_648.0, 1e300, f64::NAN] {
            assert_eq!(whole(other), None, "{other}");
        }
    }

    fn length(allowance: &Allowance, count: i32) -> Result<usize, FieldFailure> {
        allowance
            .items(Some(count), Selected::default())
            .map(|items| items.len())
    }

    #[test]
    fn a_list_is_as_long_as_asked() {
        assert_eq!(length(&Allowance::default(), 0), Ok(0));
        assert_eq!(length(&Allowance::default(), ITEMS_MAX), Ok(10_000));
    }

    #[test]
    fn a_count_out_of_range_is_refused() {
        for count in [-1, i32::MIN, ITEMS_MAX + 1, i32::MAX] {
            let refused = length(&Allowance::default(), count);
            assert_eq!(refused, Err(FieldFailure::CountOutOfRange(count)));
        }
    }

    #[test]
    fn all_lists_of_a_request_share_one_allowance() {
        let allowance = Allowance::default();
        assert_eq!(length(&allowance, ITEMS_MAX), Ok(10_000));
        assert_eq!(length(&allowance, ITEMS_MAX), Ok(10_000));
        assert_eq!(length(&allowance, 1), Err(FieldFailure::TooManyItems));
        assert_eq!(length(&allowance, 0), Ok(0));
    }

    #[test]
    fn fields_and_names_count_in_each_item() {
        let items = |allowance: &Allowance, selected| {
            let items = allowance.items(Some(ITEMS_MAX), selected);
            items.map(|items| items.len())
        };
        let three: Selected = ["a", "b", "c"].into_iter().collect();
        let allowance = Allowance::default();
        assert_eq!(items(&allowance, three), Ok(10_000));
        assert_eq!(items(&allowance, three), Ok(10_000));
        let seven: Selected = ["a"; 7].into_iter().collect();
        let refused = items(&Allowance::default(), seven);
        assert_eq!(refused, Err(FieldFailure::TooManyFields(70_000)));
        let long = "x".repeat(256);
        let long: Selected = [long.as_str()].into_iter().collect();
        let refused = items(&Allowance::default(), long);
        assert_eq!(refused, Err(FieldFailure::TooLongNames(2_560_000)));
    }

    #[test]
    fn texts_come_back_until_they_are_too_many() {
        let allowance = Allowance::default();
        let text = "x".repeat(TEXT_BYTES_PER_REQUEST_MAX);
        assert_eq!(allowance.text(text.clone()), Ok(text));
        let refused = FieldFailure::TooMuchText(TEXT_BYTES_PER_REQUEST_MAX);
        assert_eq!(allowance.text(String::new()), Err(refused.clone()));
        assert_eq!(allowance.failure(Some("no".to_owned())), refused);
        // The program's own message costs no bytes.
        assert_eq!(allowance.failure(None), FieldFailure::asked(None));
    }

    #[test]
    fn an_item_is_found_by_its_id_only() {
        let all = Allowance::default();
        let all = all.items(Some(ITEMS_MAX), Selected::default()).unwrap();
        let last = all.last();
        assert_eq!(Item::with_id("10000"), last);
        for unknown in ["0", "10001", "-1", "007", "+7", "seven", ""] {
            assert_eq!(Item::with_id(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn an_overflow_leaves_the_counter_as_it_was() {
        let counter = Counter::default();
        assert_eq!(counter.add(Some(5)), Ok(5));
        let refused = counter.add(Some(i32::MAX));
        assert_eq!(refused, Err(FieldFailure::CounterOverflow(i32::MAX)));
        assert_eq!(counter.total(), 5);
        assert_eq!(counter.add(Some(-7)), Ok(-2));
    }
}
