//! The rows of a new database: the same products and line items on every machine and at every start.

use crate::config::Amount;
use crate::entity::{LineItem, Product};
use crate::id::Id;
use crate::moment::Moment;

/// 2023-01-01, midnight, in microseconds since 1970.
const FIRST_CREATED_US: i64 = 1_672_531_200_000_000;
const MINUTE_US: i64 = 60_000_000;

const MANNERS: [&str; 12] = [
    "Brushed", "Compact", "Everyday", "Folding", "Heavy", "Light", "Narrow", "Plain", "Quiet",
    "Round", "Sturdy", "Tall",
];
const MATTERS: [&str; 10] = [
    "Beech", "Canvas", "Ceramic", "Copper", "Cork", "Glass", "Linen", "Slate", "Steel", "Wool",
];
const THINGS: [&str; 14] = [
    "Basket", "Bench", "Bowl", "Clock", "Crate", "Kettle", "Lamp", "Ladder", "Mirror", "Rack",
    "Shelf", "Stool", "Table", "Tray",
];

/// All rows, each kind sorted by id, as in the tables.
pub(crate) fn rows(amount: Amount) -> (Vec<Product>, Vec<LineItem>) {
    let mut products: Vec<_> = (0..amount.products).map(product).collect();
    // Line items need products to refer to.
    let line_items = if amount.products == 0 {
        0
    } else {
        amount.line_items
    };
    let mut items: Vec<_> = (0..line_items)
        .map(|number| line_item(number, amount.products))
        .collect();
    products.sort_unstable_by_key(|product| product.id);
    items.sort_unstable_by_key(|item| item.id);
    (products, items)
}

fn product(number: u32) -> Product {
    let mut draw = Draw::new(b'p', number);
    let id = draw.id();
    let name = format!(
        "{} {} {} {number}",
        MANNERS[draw.below(12) as usize],
        MATTERS[draw.below(10) as usize],
        THINGS[draw.below(14) as usize]
    );
    let price = 100 + draw.below(99_900).cast_signed();
    let (created_at, updated_at) = draw.times(number);
    Product {
        id,
        name,
        price,
        created_at,
        updated_at,
    }
}

fn line_item(number: u32, products: u32) -> LineItem {
    let mut draw = Draw::new(b'l', number);
    let id = draw.id();
    let units = 1 + draw.below(12).cast_signed();
    let product = draw.below(products);
    let (created_at, updated_at) = draw.times(number);
    LineItem {
        id,
        units,
        // Computed again from the product's number, so that any row can be created alone.
        product_id: Draw::new(b'p', product).id(),
        created_at,
        updated_at,
        loaded: None,
    }
}

/// Pseudo-random numbers that depend only on a kind and a number (splitmix64).
struct Draw(u64);

impl Draw {
    fn new(kind: u8, number: u32) -> Self {
        // The kind is in the high half, so that product 1 and line item 1 have different seeds.
        let mut draw = Self(u64::from(kind) << 32 | u64::from(number));
        // Mixed once, so that neighboring numbers give unrelated rows.
        draw.0 = draw.next();
        draw
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `end` - 1.
    fn below(&mut self, end: u32) -> u32 {
        let rest = self.next() % u64::from(end);
        u32::try_from(rest).expect("a remainder is smaller than what it is the remainder of")
    }

    /// A UUID of version 8, which has custom bits.
    fn id(&mut self) -> Id {
        let bits = u128::from(self.next()) << 64 | u128::from(self.next());
        Id(uuid::Builder::from_custom_bytes(bits.to_be_bytes()).into_uuid())
    }

    /// Time of creation, one per minute, and time of the last change within a month after it.
    fn times(&mut self, number: u32) -> (Moment, Moment) {
        let created = FIRST_CREATED_US + i64::from(number) * MINUTE_US;
        let changed = created + i64::from(self.below(30 * 24 * 60)) * MINUTE_US;
        let moment = |us| Moment::from_us(us).expect("2023 and the years after it are in range");
        (moment(created), moment(changed))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_default_amount_has_ids_of_its_own_and_products_for_all_items() {
        let amount = Amount {
            products: 10_000,
            line_items: 100_000,
        };
        let (products, items) = rows(amount);
        assert_eq!((products.len(), items.len()), (10_000, 100_000));
        let known: HashSet<_> = products.iter().map(|product| product.id).collect();
        let own: HashSet<_> = items.iter().map(|item| item.id).collect();
        assert_eq!((known.len(), own.len()), (10_000, 100_000));
        assert!(items.iter().all(|item| known.contains(&item.product_id)));
        let wanted: HashSet<_> = items.iter().map(|item| item.product_id).collect();
        assert!(wanted.len() > 9_900, "{}", wanted.len());
        assert!(products.is_sorted_by_key(|product| product.id));
    }

    #[test]
    fn the_first_rows_are_the_same_for_ever() {
        let first = [
            serde_json::to_string(&product(0)).unwrap(),
            serde_json::to_string(&line_item(0, 10_000)).unwrap(),
        ];
        let expected = [
            concat!(
                r#"{"id":"c6eb9858-27c2-851b-9af4-abf4035f10b3","name":"Everyday Canvas Shelf 0","#,
                r#""price":29736,"created_at":"2023-01-01T00:00:00.000000+00:00","#,
                r#""updated_at":"2023-01-25T07:40:00.000000+00:00"}"#
            ),
            concat!(
                r#"{"id":"8cfa6e62-9967-828e-9700-de6b7b1e057e","units":6,"#,
                r#""product_id":"8b268652-0c3c-8fa3-b1b9-7bec3ed6aaa3","#,
                r#""created_at":"2023-01-01T00:00:00.000000+00:00","#,
                r#""updated_at":"2023-01-02T06:22:00.000000+00:00"}"#
            ),
        ];
        assert_eq!(first, expected);
        assert_eq!(line_item(0, 0xFFFF).id, line_item(0, 1).id);
    }
}
