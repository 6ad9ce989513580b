//! JSON as bytes, for services that read and write it without a tree, or with a tree of their own.
//!
//! * [`Cursor`] checks tokens of text that may be invalid, and returns their bounds.
//! * [`string_length`] and [`bare_length`] step over tokens of valid JSON.
//! * [`plain_run`], [`is_plain`] and [`is_plain_ascii`] compare eight bytes of a string at once.
//! * [`write_string`] adds escapes and [`unescape`] removes them.
//! * [`check_unambiguous`] refuses text that two readers may understand differently, and
//!   [`check_members`] also returns the places of an object's members.
//!
//! Absent on purpose: a tree of lists and objects, because each service builds different values. Numbers are
//! only available as their digits.

#![warn(missing_docs)]

mod cursor;
mod known;
mod plain;
mod string;
mod unambiguous;

pub use cursor::{Cursor, StringSpan, Unexpected};
pub use known::{bare_length, string_length};
pub use plain::{is_plain, is_plain_ascii, plain_run};
pub use string::{
    ControlEscapes, LoneSurrogate, unescape, write_string, write_string_with, write_utf8,
};
pub use unambiguous::{
    Ambiguity, DEPTH_MAX, Member, MemberValue, check_members, check_unambiguous,
    check_unambiguous_part,
};
