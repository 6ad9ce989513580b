//! JSON as bytes, for services that read and write it without a tree of their own or with one that
//! no library has.
//!
//! * [`Cursor`] checks tokens of text that may be wrong, and says where each begins and ends;
//! * [`string_length`] and [`bare_length`] step over tokens of text that is known to be JSON;
//! * [`plain_run`], [`is_plain`] and [`is_plain_ascii`] compare eight bytes of a string at once;
//! * [`write_string`] and [`unescape`] put escapes in and take them out;
//! * [`check_unambiguous`] refuses text that two readers may understand differently, and
//!   [`check_members`] tells where the members of an object stand, too.
//!
//! Absent on purpose: a tree of lists and objects, because what is built of their values differs from
//! service to service; and numbers as anything but their digits.

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
